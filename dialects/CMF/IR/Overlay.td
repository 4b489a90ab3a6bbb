// Points of a model that can be changed while it runs: skills, masks, and the probe that chooses among skills.

#ifndef CORTIQ_CMF_OVERLAY
#define CORTIQ_CMF_OVERLAY

include "dialects/CMF/IR/Attrs.td"
include "dialects/CMF/IR/Base.td"
include "dialects/CMF/IR/Types.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def CMF_OverlayOp : CMF_Op<"overlay", [Pure, AllTypesMatch<["base", "result"]>]> {
  let summary = "a weight that skills replace";
  let description = [{
    `base`, or one of the alternatives while its skill is in force, or their weighted sum under a blend, in which `base`
    stands in for skills without an alternative. `skills` has, for each alternative, the skill's index in the module's
    `cmf.overlay_catalog`. All have one shape; codecs may differ.

    ```mlir
    %w = cmf.overlay %base, %story {skills = array<i64: 0>}
        : !cmf.weight<256x128, q8_row>, !cmf.weight<256x128, q4_tiled>
    ```
  }];
  let arguments = (ins CMF_AnyWeight:$base, Variadic<CMF_AnyWeight>:$alternatives, DenseI64ArrayAttr:$skills);
  let results = (outs CMF_AnyWeight:$result);
  let assemblyFormat = [{
    $base `,` $alternatives attr-dict `:` qualified(type($base)) `,` qualified(type($alternatives))
  }];
  let extraClassDeclaration = [{
    /// The alternative of skill `skill`, or a null value.
    ::mlir::Value getAlternativeOf(int64_t skill);
  }];
}

def CMF_PlaceOp : CMF_Op<"place", [Pure]> {
  let summary = "columns in other places";
  let description = [{
    Column `c` of the result is column `from[c]` of `x`, or zero where `from[c]` is -1. Brings what a model compiled for
    one task mask computes back to the width that the next product reads.

    ```mlir
    %y = cmf.place %x {from = array<i64: 0, -1, 1, -1>} : tensor<?x2xf32> -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, DenseI64ArrayAttr:$from);
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}

def CMF_LayerGateOp : CMF_Op<"layer_gate", [Pure, AllTypesMatch<["before", "after", "result"]>]> {
  let summary = "lets a task mask skip a layer";
  let description = [{
    `after`, or `before` while the mask in force has the gate bit of `layer` clear. What computes `after` from `before`
    may be left out then.

    ```mlir
    %h = cmf.layer_gate %before, %after {layer = 3 : i64} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$before, CMF_Activations:$after, I64Attr:$layer);
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$before `,` $after attr-dict `:` type($before)";
}

def CMF_TapOp : CMF_Op<"tap", [MemoryEffects<[MemRead<CMF_SequenceState>, MemWrite<CMF_SequenceState>]>]> {
  let summary = "lets the residual stream behind a layer be read";
  let description = [{
    Adds the rows of all tokens up, where the caller asks for their mean; does nothing otherwise.

    ```mlir
    cmf.tap %h {layer = 2 : i64} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, I64Attr:$layer);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

#endif
