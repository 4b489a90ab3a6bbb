// Operations of the kernel dialect for what changes while a model runs. Any call may carry two attributes beside its own:
// `cmf.mask` (#cmf.mask: the columns of its result that a task mask cuts) and `kernel.gate` (the layer with whose gate
// it is skipped).

#ifndef CORTIQ_KERNEL_OVERLAY
#define CORTIQ_KERNEL_OVERLAY

include "Types.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kernel_ChooseOp : Kernel_Op<"choose", [HasParent<"StageOp">, SingleBlock, NoTerminator, NoRegionArguments,
                                           RecursiveMemoryEffects]> {
  let summary = "a call that depends on the skill in force";
  let description = [{
    Runs the call in `base`, if there is one, or that of an alternative: `cases` has each alternative's skill, -1 for the
    one that runs when several skills are mixed. Each region holds one call.

    ```mlir
    kernel.choose base {
      kernel.norm %x weight(@w1) out(%n : !kernel.buffer<f32, 64>) {eps = 1.0e-5 : f32} : !kernel.buffer<f32, 64>
    } cases array<i64: 0> {
      kernel.norm %x weight(@skill.story.w1) out(%n : !kernel.buffer<f32, 64>) {eps = 1.0e-5 : f32} : !kernel.buffer<f32, 64>
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$cases);
  let regions = (region MaxSizedRegion<1>:$base, VariadicRegion<SizedRegion<1>>:$alternatives);
  let assemblyFormat = "`base` $base `cases` $cases $alternatives attr-dict";
  let hasVerifier = 1;
}

def Kernel_LayerGateOp : Kernel_StageMember<"layer_gate", [AllTypesMatch<["before", "after", "out"]>]> {
  let summary = "lets a task mask skip a layer";
  let description = [{
    out = after, or before while the mask in force has the gate bit of `layer` clear.

    ```mlir
    kernel.layer_gate %before, %after -> %out {layer = 3 : i64} : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$before, Arg<Kernel_F32Buffer, "", [MemRead]>:$after,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, ConfinedAttr<I64Attr, [IntNonNegative]>:$layer);
  let assemblyFormat = "$before `,` $after `->` $out attr-dict `:` qualified(type($out))";
}

def Kernel_PlaceOp : Kernel_StageMember<"place", [AttrSizedOperandSegments]> {
  let summary = "columns in other places";
  let description = [{
    Column c of the result is column from[c] of the input, or zero where from[c] is -1; as floats (`out`), as quantized
    activations (`act`), or both.

    ```mlir
    kernel.place %x out(%y : !kernel.buffer<f32, 4>) {from = array<i64: 0, -1, 1, -1>} : !kernel.buffer<f32, 2>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act, DenseI64ArrayAttr:$from);
  let assemblyFormat = [{
    $input oilist(`out` `(` $out `:` qualified(type($out)) `)` | `act` `(` $act `:` qualified(type($act)) `)`) attr-dict
    `:` qualified(type($input))
  }];
  let hasVerifier = 1;
}

def Kernel_TapOp : Kernel_StageMember<"tap"> {
  let summary = "adds a layer's residual rows up";
  let description = [{
    Where the caller asks for the mean of the residual stream behind `layer`; does nothing otherwise.

    ```mlir
    kernel.tap %x {layer = 2 : i64} : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$layer);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
}

#endif
