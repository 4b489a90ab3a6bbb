// Operations of the cmf dialect.

#ifndef CORTIQ_CMF_OPS
#define CORTIQ_CMF_OPS

include "dialects/CMF/IR/Attrs.td"
include "dialects/CMF/IR/Base.td"
include "dialects/CMF/IR/Types.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class CMF_Op<string mnemonic, list<Trait> traits = []> : Op<CMF_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

// An operation whose result has the type of the operands named `same`.
class CMF_SameTypeOp<string mnemonic, list<string> same, list<Trait> traits = []>
    : CMF_Op<mnemonic, !listconcat(traits, [Pure, AllTypesMatch<!listconcat(same, ["result"])>])> {
  let results = (outs CMF_Activations:$result);
}

// The state of one sequence: cached keys and values of every layer, and the position reached.
def CMF_SequenceState : Resource<"::cortiq::cmf::SequenceState">;

//===--- Weights ----------------------------------------------------------------------------------------------------===//

def CMF_WeightOp : CMF_Op<"weight", [Pure]> {
  let summary = "names a weight of the model";
  let description = [{
    `name` is the canonical name (CMF specification 3.1), whatever the file calls the tensor. `source` says where its
    payload lies; without it the weight's bytes come from elsewhere (tests, `--weights=none`). `rows` picks and reorders
    rows of the file's tensor; absent, the weight is the whole tensor in file order. `layout` is chosen by
    `cmf-choose-layout`.

    ```mlir
    %w = cmf.weight "model.layers.0.self_attn.k_proj.weight"
        {source = #cmf.source<file = 0, offset = 4096, bytes = 124416>, rows = #cmf.rows<of = 192, deinterleave = 64>}
        : !cmf.weight<192x576, q4_k>
    ```
  }];
  let arguments = (ins
    StrAttr:$name,
    OptionalAttr<CMF_SourceAttr>:$source,
    OptionalAttr<CMF_RowsAttr>:$rows,
    OptionalAttr<CMF_LayoutAttr>:$layout
  );
  let results = (outs CMF_AnyWeight:$result);
  let assemblyFormat = "$name attr-dict `:` qualified(type($result))";
  let builders = [
    OpBuilder<(ins "::cortiq::cmf::WeightType":$type, "::llvm::StringRef":$name,
                   CArg<"::cortiq::cmf::SourceAttr", "{}">:$source, CArg<"::cortiq::cmf::RowsAttr", "{}">:$rows), [{
      build($_builder, $_state, type, $_builder.getStringAttr(name), source, rows, LayoutAttr());
    }]>
  ];
  let extraClassDeclaration = [{
    ::cortiq::cmf::WeightType getType() { return getResult().getType(); }
  }];
}

def CMF_DequantOp : CMF_Op<"dequant", [Pure, InferTypeOpAdaptor]> {
  let summary = "decodes a weight matrix to f32";
  let description = [{
    The values are those of the codec's reference decode, exactly.

    ```mlir
    %d = cmf.dequant %w : !cmf.weight<1536x576, q4_k>
    ```
  }];
  let arguments = (ins CMF_MatrixWeight:$weight);
  let results = (outs CMF_DecodedMatrix:$result);
  let assemblyFormat = "$weight attr-dict `:` qualified(type($weight))";
  let hasVerifier = 0;
}

//===--- Linear algebra ---------------------------------------------------------------------------------------------===//

def CMF_EmbedOp : CMF_Op<"embed", [Pure, InferTypeOpAdaptor]> {
  let summary = "rows of the embedding matrix, one a token";
  let description = [{
    Token `id` gives row `id` of the weight times `scale` (1 unless the model asks for more). An id beyond the matrix
    gives zeros.

    ```mlir
    %h = cmf.embed %ids, %w {scale = 2.0 : f64} : tensor<?xi32>, !cmf.weight<49152x576, q8_0>
    ```
  }];
  let arguments = (ins
    CMF_TokenIds:$ids,
    CMF_MatrixWeight:$weight,
    DefaultValuedAttr<F64Attr, "1.0">:$scale
  );
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$ids `,` $weight attr-dict `:` type($ids) `,` qualified(type($weight))";
}

def CMF_MatmulOp : CMF_Op<"matmul", [Pure, InferTypeOpAdaptor]> {
  let summary = "a linear layer on a decoded matrix";
  let description = [{
    `result[t][r] = sum over k of matrix[r][k] * x[t][k]`.

    ```mlir
    %y = cmf.matmul %x, %d : tensor<?x576xf32>, tensor<1536x576xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, CMF_DecodedMatrix:$matrix);
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$x `,` $matrix attr-dict `:` type($x) `,` type($matrix)";
}

def CMF_BiasAddOp : CMF_SameTypeOp<"bias_add", ["x"]> {
  let summary = "adds a vector to every token";
  let description = [{
    ```mlir
    %y = cmf.bias_add %x, %b : tensor<?x576xf32>, !cmf.weight<576, f32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, CMF_VectorWeight:$bias);
  let assemblyFormat = "$x `,` $bias attr-dict `:` type($x) `,` qualified(type($bias))";
}

def CMF_FusedMatmulOp
    : CMF_Op<"fused_matmul", [Pure, AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "linear layers that share one input, on encoded weights";
  let description = [{
    One result a weight: `result_i = x * weight_i^T [+ bias_i] [+ residual]`. Each weight keeps its own codec and row
    count; all have as many columns as `x` has features. `biases` lists the biases there are, and `biased` says of each
    weight whether it has one. `residual` needs a single weight. `arm` is set by `cmf-specialise`.

    ```mlir
    %q, %k, %v = cmf.fused_matmul %x weights(%wq, %wk, %wv) biases(%bq, %bk, %bv)
        {biased = array<i1: true, true, true>}
        : tensor<?x576xf32> weights(!cmf.weight<576x576, q4_k>, !cmf.weight<192x576, q4_k>, !cmf.weight<192x576, q6_k>)
          biases(!cmf.weight<576, f32>, !cmf.weight<192, f32>, !cmf.weight<192, f32>)
    %h = cmf.fused_matmul %a weights(%wo) residual(%x)
        : tensor<?x576xf32> weights(!cmf.weight<576x576, q4_k>) residual(tensor<?x576xf32>)
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    Variadic<CMF_MatrixWeight>:$weights,
    Variadic<CMF_VectorWeight>:$biases,
    Optional<CMF_Activations>:$residual,
    OptionalAttr<DenseBoolArrayAttr>:$biased,
    OptionalAttr<CMF_ArmAttr>:$arm
  );
  let results = (outs Variadic<CMF_Activations>:$parts);
  let assemblyFormat = [{
    $x `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)? (`residual` `(` $residual^ `)`)? attr-dict
    `:` type($x) `weights` `(` qualified(type($weights)) `)` (`biases` `(` qualified(type($biases))^ `)`)?
    (`residual` `(` type($residual)^ `)`)?
  }];
  let builders = [
    // `biases` has one entry a weight, null where there is none.
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::ValueRange":$weights, "::llvm::ArrayRef<::mlir::Value>":$biases,
                   "::mlir::Value":$residual, CArg<"::cortiq::cmf::ArmAttr", "{}">:$arm)>
  ];
  let extraClassDeclaration = [{
    /// The bias of part `part`, or a null value.
    ::mlir::Value getBiasOf(unsigned part);
    ::cortiq::cmf::WeightType getWeightType(unsigned part);
  }];
}

//===--- Norms ------------------------------------------------------------------------------------------------------===//

def CMF_RmsNormOp : CMF_SameTypeOp<"rms_norm", ["x"]> {
  let summary = "RMS norm of whole rows, or of groups of features";
  let description = [{
    `y = x / sqrt(mean(x^2) + eps) * w`, where the mean runs over the row, or over each `group` features of it (the norm
    of every query or key head). The weight has one value a feature of the group; without it the factor is 1, and with
    `unit_offset` it is `1 + w`.

    ```mlir
    %n = cmf.rms_norm %x, %w {eps = 1.0e-6 : f64} : tensor<?x576xf32>, !cmf.weight<576, f32>
    %q = cmf.rms_norm %p, %u {eps = 1.0e-6 : f64, group = 64 : i64} : tensor<?x576xf32>, !cmf.weight<64, f32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    Optional<CMF_VectorWeight>:$weight,
    F64Attr:$eps,
    UnitAttr:$unit_offset,
    OptionalAttr<I64Attr>:$group
  );
  let assemblyFormat = "$x (`,` $weight^)? attr-dict `:` type($x) (`,` qualified(type($weight))^)?";
  let extraClassDeclaration = [{
    /// Features that one mean runs over.
    int64_t getGroupSize();
  }];
}

def CMF_AddRmsNormOp : CMF_Op<"add_rms_norm", [Pure, AllTypesMatch<["a", "b", "sum", "normed"]>]> {
  let summary = "a sum and its RMS norm";
  let description = [{
    `sum = a + b`, `normed = rms_norm(sum, w)` over whole rows.

    ```mlir
    %s, %n = cmf.add_rms_norm %a, %b, %w {eps = 1.0e-6 : f64} : tensor<?x576xf32>, !cmf.weight<576, f32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$a,
    CMF_Activations:$b,
    CMF_VectorWeight:$weight,
    F64Attr:$eps,
    UnitAttr:$unit_offset
  );
  let results = (outs CMF_Activations:$sum, CMF_Activations:$normed);
  let assemblyFormat = "$a `,` $b `,` $weight attr-dict `:` type($a) `,` qualified(type($weight))";
}

//===--- Attention --------------------------------------------------------------------------------------------------===//

def CMF_RopeOp : CMF_SameTypeOp<"rope", ["x"]> {
  let summary = "rotates queries or keys by their position";
  let description = [{
    In each head of `head_dim` features the first `d = 2 * (number of frequencies)` are rotated in half-split pairs
    `(i, i + d/2)`; the others pass through. Token `t` of a batch has the position at which the batch starts plus `t`.

    ```mlir
    %r = cmf.rope %q {head_dim = 64 : i64, rope = #rope} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, I64Attr:$head_dim, CMF_RopeAttr:$rope);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def CMF_AttentionOp : CMF_Op<"attention", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead<CMF_SequenceState>, MemWrite<CMF_SequenceState>]>]> {
  let summary = "causal attention over everything this layer has seen";
  let description = [{
    Appends the keys and values of the batch to the cache of `layer`, then, for each token and head `h` (which uses
    key/value head `h / (heads / kv_heads)`): `softmax(softcap(scale * q . k)) * v` over the cached tokens up to its own
    position, with `window` only over the last `window` of them, itself included. `softcap = c` is `c * tanh(s / c)`. A
    `sinks` vector has one logit a head that joins the softmax's denominator without a value. With a temperature the
    query at position `p` counts times `1 + temperature_scale * ln(1 + floor(p / temperature_length))`.

    `anchors` are keys and values that every token sees besides, of each key/value head as many as fit: they are scored
    by other queries, `still`, with the same scale and without cap. `group_windows` narrows the window of each
    key/value head. `ring` says that what is older than the window is forgotten for good: the layer's memory is a ring that does not
    grow with the sequence.

    ```mlir
    %a = cmf.attention %q, %k, %v {layer = 0 : i64, heads = 9 : i64, kv_heads = 3 : i64, head_dim = 64 : i64,
                                   v_dim = 64 : i64, scale = 0.125 : f64}
        : tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$q,
    CMF_Activations:$k,
    CMF_Activations:$v,
    Optional<CMF_VectorWeight>:$sinks,
    Optional<CMF_Activations>:$still,
    Optional<CMF_VectorWeight>:$anchor_keys,
    Optional<CMF_VectorWeight>:$anchor_values,
    I64Attr:$layer,
    I64Attr:$heads,
    I64Attr:$kv_heads,
    I64Attr:$head_dim,
    I64Attr:$v_dim,
    F64Attr:$scale,
    OptionalAttr<I64Attr>:$window,
    OptionalAttr<F64Attr>:$softcap,
    OptionalAttr<F64Attr>:$temperature_length,
    OptionalAttr<F64Attr>:$temperature_scale,
    OptionalAttr<DenseI64ArrayAttr>:$group_windows,
    UnitAttr:$ring
  );
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`sinks` `(` $sinks^ `)`)?
    (`still` `(` $still^ `)` `anchors` `(` $anchor_keys `,` $anchor_values `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) (`sinks` `(` qualified(type($sinks))^ `)`)?
    (`still` `(` type($still)^ `)` `anchors` `(` qualified(type($anchor_keys)) `,` qualified(type($anchor_values)) `)`)?
    `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Anchors of each key/value head.
    int64_t getAnchorCount();
  }];
}

//===--- Element by element -----------------------------------------------------------------------------------------===//

def CMF_GluOp : CMF_SameTypeOp<"glu", ["gate", "up"]> {
  let summary = "the gate of a feed-forward block";
  let description = [{
    `activation(gate) * up`, element by element. `situ` and `swigluoai` take two numbers, and change `up` as well.

    ```mlir
    %a = cmf.glu silu(%gate, %up) : tensor<?x1536xf32>
    %b = cmf.glu swigluoai(%gate, %up) {alpha = 1.702 : f64, limit = 7.0 : f64} : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$gate, CMF_Activations:$up, CMF_ActivationAttr:$activation,
    OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$limit);
  let assemblyFormat = "custom<Activation>($activation) `(` $gate `,` $up `)` attr-dict `:` type($gate)";
}

def CMF_AddOp : CMF_SameTypeOp<"add", ["a", "b"], [Commutative]> {
  let summary = "a sum";
  let description = [{
    ```mlir
    %h = cmf.add %x, %y : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$a, CMF_Activations:$b);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
}

def CMF_ScaleOp : CMF_SameTypeOp<"scale", ["x"]> {
  let summary = "multiplies by a constant";
  let description = [{
    The factor is rounded to f32 before it is applied.

    ```mlir
    %y = cmf.scale %x {factor = 0.5 : f64} : tensor<?x49152xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, F64Attr:$factor);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def CMF_SoftcapOp : CMF_SameTypeOp<"softcap", ["x"]> {
  let summary = "keeps values within a bound, smoothly";
  let description = [{
    `cap * tanh(x / cap)`.

    ```mlir
    %y = cmf.softcap %x {cap = 30.0 : f64} : tensor<?x49152xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, F64Attr:$cap);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

include "dialects/CMF/IR/GateOps.td"
include "dialects/CMF/IR/HadamardOps.td"
include "dialects/CMF/IR/MoeOps.td"
include "dialects/CMF/IR/RecurrentOps.td"
include "dialects/CMF/IR/ResonanceOps.td"
include "dialects/CMF/IR/OpsDense.td"
include "dialects/CMF/IR/OpsHeads.td"
include "dialects/CMF/IR/Overlay.td"

#endif
