// Operations of the kernel dialect. Each mirrors one record of the artifact schema; the schema's comments state the
// arithmetic that the runtime promises.

#ifndef CORTIQ_KERNEL_OPS
#define CORTIQ_KERNEL_OPS

include "Types.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

//===-- Tables ---------------------------------------------------------------------------------------------------===//

class Kernel_TableOp<string mnemonic> : Kernel_Op<mnemonic, [Symbol, HasParent<"::mlir::ModuleOp">]>;

def Kernel_WeightOp : Kernel_TableOp<"weight"> {
  let summary = "an entry of the weight table";
  let description = [{
    One tensor of the artifact's weights section, under its canonical name. `source` says where its payload stands in the
    model file, `source_codec` in which codec if another than its own, and `row_map` which of the payload's rows it takes
    (`source` and `row_map` are attributes of the dialect the program came from, read when the artifact is written).
    Vectors are stored as f32, verbatim, one row, with `add` added to each value. One with `kernel.blend` is not stored:
    it is mixed of the entries that the attribute lists, with the index of each one's skill, -1 for the model's own.

    ```mlir
    kernel.weight @model.layers.0.self_attn.q_proj.weight q4_k r16 576 x 512
      {source = #cmf.source<file = 0, offset = 4096, bytes = 165888>}
    kernel.weight @model.norm.weight f32 verbatim 1 x 512 {add = 1.0 : f32}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$codec, Kernel_LayoutAttr:$layout,
      ConfinedAttr<I64Attr, [IntPositive]>:$rows, ConfinedAttr<I64Attr, [IntPositive]>:$cols,
      DefaultValuedAttr<F32Attr, "0.0f">:$add, OptionalAttr<StrAttr>:$source_codec,
      OptionalAttr<AnyAttr>:$source, OptionalAttr<AnyAttr>:$row_map);
  let assemblyFormat = [{
    $sym_name custom<Word>($codec) custom<LayoutWord>($layout) custom<Extent>($rows, $cols) attr-dict
  }];
  let hasVerifier = 1;
}

def Kernel_DefineOp : Kernel_TableOp<"define"> {
  let summary = "a generated kernel";
  let description = [{
    An entry of the kernel table. Its symbol is the word of the kernel naming grammar for its spec, the name under which
    objdump, perf and gdb see the code. With `from_tokens` it takes any number of tokens from that on, up to its tile's.

    ```mlir
    kernel.define @gemv_f32_q8a_q4_k_r16_k576_1x16_v3 <q4_k, r16, k = 576, tile = 1x16, act = q8a, isa = "x86-64-v3">
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Kernel_Spec:$spec,
      OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$from_tokens);
  let assemblyFormat = "$sym_name $spec attr-dict";
  let hasVerifier = 1;
}

def Kernel_KvLayerOp : Kernel_TableOp<"kv_layer"> {
  let summary = "shape of one layer's key/value cache";
  let description = [{
    `window` positions stay visible, the current one included; 0 = all. A `ring` keeps those, and as many as a batch has, and
    writes newer positions over older ones.

    ```mlir
    kernel.kv_layer @kv0 {kv_heads = 3, k_dim = 64, v_dim = 64, window = 0}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ConfinedAttr<I64Attr, [IntPositive]>:$kv_heads,
      ConfinedAttr<I64Attr, [IntPositive]>:$k_dim, ConfinedAttr<I64Attr, [IntPositive]>:$v_dim,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$window, UnitAttr:$ring);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Kernel_RopeTableOp : Kernel_TableOp<"rope_table"> {
  let summary = "frequencies of a rotary embedding";
  let description = [{
    One inverse frequency a rotated pair: angle = position * inverse_frequencies[i]. `magnitude` multiplies cosine and
    sine.

    ```mlir
    kernel.rope_table @rope0 [1.0, 0.01]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseF32ArrayAttr:$inverse_frequencies,
      DefaultValuedAttr<F32Attr, "1.0f">:$magnitude);
  let assemblyFormat = "$sym_name $inverse_frequencies attr-dict";
  let hasVerifier = 1;
}

//===-- Program --------------------------------------------------------------------------------------------------===//

def Kernel_ProgramOp : Kernel_Op<"program", [Symbol, HasParent<"::mlir::ModuleOp">, SingleBlock, NoRegionArguments]> {
  let summary = "what the executor walks for one batch of tokens";
  let description = [{
    Holds `kernel.alloc`, then `kernel.stage` in the order of execution, and ends in `kernel.return`, which names the
    buffer of the vocabulary's logits. `arena_bytes_per_token` appears when memory has been planned.

    ```mlir
    kernel.program @main {
      %x = kernel.alloc : !kernel.buffer<f32, 64>
      kernel.stage "embed" {
        kernel.embed @w0 -> %x : !kernel.buffer<f32, 64>
      }
      kernel.return %x : !kernel.buffer<f32, 64>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$arena_bytes_per_token);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Kernel_ReturnOp : Kernel_Op<"return", [Terminator, HasParent<"ProgramOp">]> {
  let summary = "ends a program and names the buffer of its logits";
  let description = [{
    ```mlir
    kernel.return %logits : !kernel.buffer<f32, 49152>
    kernel.return %logits draft(%guesses : !kernel.buffer<f32, 49152>) : !kernel.buffer<f32, 49152>
    ```

    `draft` names the buffer in which the draft stages leave theirs. The logits are read before those run.
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "logits", [MemRead]>:$logits,
      Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$draft);
  let assemblyFormat = [{
    $logits (`draft` `(` $draft^ `:` qualified(type($draft)) `)`)? attr-dict `:` qualified(type($logits))
  }];
}

def Kernel_AllocOp : Kernel_Op<"alloc", [HasParent<"ProgramOp">]> {
  let summary = "a buffer of the arena";
  let description = [{
    `kernel-plan-memory` adds `offset`: bytes a token in front of the buffer. With a batch limit of B tokens the buffer
    starts B * offset bytes into the arena. Buffers whose values are never alive together may share their place. `input` marks
    a buffer that the caller fills before the first stage.

    ```mlir
    %q = kernel.alloc {offset = 2304 : i64} : !kernel.buffer<f32, 576>
    ```
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset, UnitAttr:$input);
  let results = (outs Kernel_Buffer:$buffer);
  let assemblyFormat = "attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Kernel_StageOp : Kernel_Op<"stage", [HasParent<"ProgramOp">, SingleBlock, NoTerminator, NoRegionArguments,
                                         RecursiveMemoryEffects]> {
  let summary = "calls that need no barrier between them";
  let description = [{
    No call of a stage reads what another of the same stage writes. A stage marked `head` runs only on the tokens whose
    logits are wanted; one marked `head stream` on all of them while somebody will ask for guesses, whose stages are
    marked `draft`, stand behind all others and run by themselves. The name is for people: "layer 3: qkv".

    ```mlir
    kernel.stage head "logits" { … }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$head, UnitAttr:$stream, UnitAttr:$draft);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`draft` $draft^)? (`head` $head^)? (`stream` $stream^)? $name attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// Whether both run on the same tokens of the same steps.
    bool runsWith(StageOp other) {
      return getHead() == other.getHead() && getStream() == other.getStream() && getDraft() == other.getDraft();
    }
  }];
  let hasVerifier = 1;
}

//===-- Calls ----------------------------------------------------------------------------------------------------===//

class Kernel_StageMember<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, !listconcat([ParentOneOf<["StageOp", "ChooseOp"]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Kernel_EmbedOp : Kernel_StageMember<"embed"> {
  let summary = "rows of the embedding table, one a token";
  let description = [{
    out[t] = decode(weight, row id[t]) * scale.

    ```mlir
    kernel.embed @w0 -> %x {scale = 8.0 : f32} : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, Arg<Kernel_F32Buffer, "", [MemWrite]>:$out,
      DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let assemblyFormat = "$weight `->` $out attr-dict `:` qualified(type($out))";
}

def Kernel_NormOp : Kernel_StageMember<"norm", [AttrSizedOperandSegments]> {
  let summary = "root mean square norm of a row, with an addition in front of it";
  let description = [{
    s = input [+ add]; n = s / sqrt(mean(s^2) + eps) [* weight] * scale [+ bias]. `sum` receives s and may be the input;
    `out` receives n as floats, `act` as quantized activations. `centered` takes the mean off s first (LayerNorm).

    ```mlir
    kernel.norm %x weight(@w1) act(%a : !kernel.buffer<q8a, 64>) {eps = 1.0e-5 : f32} : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$add,
      OptionalAttr<FlatSymbolRefAttr>:$weight, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$sum,
      Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out, Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act,
      F32Attr:$eps, DefaultValuedAttr<F32Attr, "1.0f">:$scale, OptionalAttr<FlatSymbolRefAttr>:$bias, UnitAttr:$centered);
  let assemblyFormat = [{
    $input oilist(`add` `(` $add `:` qualified(type($add)) `)` | `weight` `(` $weight `)` | `bias` `(` $bias `)` |
      `sum` `(` $sum `:` qualified(type($sum)) `)` | `out` `(` $out `:` qualified(type($out)) `)` |
      `act` `(` $act `:` qualified(type($act)) `)`) attr-dict `:` qualified(type($input))
  }];
  let hasVerifier = 1;
}

def Kernel_QuantizeOp : Kernel_StageMember<"quantize", [AttrSizedOperandSegments]> {
  let summary = "activations brought into the form a kernel reads";
  let description = [{
    The input, multiplied by the weight's column scales where `column_scale` names a weight that has them (q8_2f, blr_v), as
    quantized activations (`act`) or, for the exact arm with column scales, as floats (`out`).

    ```mlir
    kernel.quantize %x act(%a : !kernel.buffer<q8a, 64>) : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, OptionalAttr<FlatSymbolRefAttr>:$column_scale,
      Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out, Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act);
  let assemblyFormat = [{
    $input oilist(`column_scale` `(` $column_scale `)` | `out` `(` $out `:` qualified(type($out)) `)` |
      `act` `(` $act `:` qualified(type($act)) `)`) attr-dict `:` qualified(type($input))
  }];
  let hasVerifier = 1;
}

def Kernel_GluOp : Kernel_StageMember<"glu", [AttrSizedOperandSegments]> {
  let summary = "gated activation";
  let description = [{
    a = activation(gate) [* up]; `out` receives a as floats, `act` as quantized activations. `alpha` and `limit` are the
    numbers of activations that have some (see the artifact schema).

    ```mlir
    kernel.glu silu %g up(%u : !kernel.buffer<f32, 96>) act(%a : !kernel.buffer<q8a, 96>) : !kernel.buffer<f32, 96>
    ```
  }];
  let arguments = (ins Kernel_ActivationAttr:$activation, Arg<Kernel_F32Buffer, "", [MemRead]>:$gate,
      Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$up, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act, DefaultValuedAttr<F32Attr, "0.0f">:$alpha,
      DefaultValuedAttr<F32Attr, "0.0f">:$limit);
  let assemblyFormat = [{
    custom<ActivationWord>($activation) $gate oilist(`up` `(` $up `:` qualified(type($up)) `)` | `out` `(` $out `:` qualified(type($out)) `)` |
      `act` `(` $act `:` qualified(type($act)) `)`) attr-dict `:` qualified(type($gate))
  }];
  let hasVerifier = 1;
}

def Kernel_MatmulOp : Kernel_StageMember<"matmul", [SingleBlock, NoTerminator, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "matrix products whose work is shared out together";
  let description = [{
    Holds one `kernel.call` a matrix: all parts are cut into blocks of rows that the workers take from one cursor. Parts may differ
    in codec, rows and row length.

    ```mlir
    kernel.matmul {
      kernel.call @w4(%a) -> %q <q4_k, r16, k = 576, act = q8a, isa = "x86-64-v3">
        : (!kernel.buffer<q8a, 576>) -> !kernel.buffer<f32, 576>
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Kernel_CallOp : Kernel_Op<"call", [HasParent<"MatmulOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the product of one matrix with a batch's activations, by generated kernels";
  let description = [{
    out[t][out_column + r] = W[r] . input[t][input_column ...] [+ bias[r]] [+ residual[t][r]]. An input column needs
    f32 activations; with columns there is no residual. `spec` describes the matrix's kernels; `kernel-dedupe` adds
    `kernels`, those for groups of 16 rows by ascending token tile, and `tails`, the same for the last rows % 16.

    ```mlir
    kernel.call @w7(%a) bias(@b7) residual(%x : !kernel.buffer<f32, 576>) -> %x
      <q4_k, r16, k = 1536, act = q8a, isa = "x86-64-v3", bias, res>
      kernels [@gemv_f32_q8a_q4_k_r16_k1536_1x16_bias_res_v3] tails [] : (!kernel.buffer<q8a, 1536>) -> !kernel.buffer<f32, 576>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, Arg<Kernel_Buffer, "", [MemRead]>:$input,
      OptionalAttr<FlatSymbolRefAttr>:$bias, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$residual,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, Kernel_Spec:$spec,
      OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "kernel symbols">>:$kernels,
      OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "kernel symbols">>:$tails,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$input_column,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$out_column);
  let assemblyFormat = [{
    $weight `(` $input `)` (`bias` `(` $bias^ `)`)? (`residual` `(` $residual^ `:` qualified(type($residual)) `)`)?
    `->` $out $spec (`kernels` $kernels^)? (`tails` $tails^)? attr-dict
    `:` `(` qualified(type($input)) `)` `->` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_AttentionPrepOp : Kernel_StageMember<"attention_prep"> {
  let summary = "queries and keys made ready, keys and values appended to the cache";
  let description = [{
    Norms of each query and key head, rotation (in the order that `norm_after_rope` says), a weightless norm of each value head
    (`v_norm`), then keys and values of the batch go into the layer's cache. Works on the buffers in place. The query at
    position p goes to `still` as it was, then is multiplied by 1 + temperature_scale * ln(1 + floor(p / temperature_length)); a scale of 0 is none.

    ```mlir
    kernel.attention_prep %q, %k, %v cache(@kv0) rope(@rope0) {heads = 9 : i64, head_dim = 64 : i64, norm_eps = 1.0e-5 : f32}
      : !kernel.buffer<f32, 576>, !kernel.buffer<f32, 192>, !kernel.buffer<f32, 192>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead, MemWrite]>:$q, Arg<Kernel_F32Buffer, "", [MemRead, MemWrite]>:$k,
      Arg<Kernel_F32Buffer, "", [MemRead, MemWrite]>:$v, FlatSymbolRefAttr:$cache,
      OptionalAttr<FlatSymbolRefAttr>:$q_norm, OptionalAttr<FlatSymbolRefAttr>:$k_norm,
      OptionalAttr<FlatSymbolRefAttr>:$rope, ConfinedAttr<I64Attr, [IntPositive]>:$heads,
      ConfinedAttr<I64Attr, [IntPositive]>:$head_dim, DefaultValuedAttr<F32Attr, "0.0f">:$norm_eps,
      UnitAttr:$norm_after_rope, UnitAttr:$v_norm, DefaultValuedAttr<F32Attr, "0.0f">:$temperature_length,
      DefaultValuedAttr<F32Attr, "0.0f">:$temperature_scale, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$still);
  let assemblyFormat = [{
    $q `,` $k `,` $v `cache` `(` $cache `)` oilist(`still` `(` $still `:` qualified(type($still)) `)` | `q_norm` `(` $q_norm `)` | `k_norm` `(` $k_norm `)` | `rope` `(` $rope `)`)
    attr-dict `:` qualified(type($q)) `,` qualified(type($k)) `,` qualified(type($v))
  }];
  let hasVerifier = 1;
}

def Kernel_AttentionOp : Kernel_StageMember<"attention", [AttrSizedOperandSegments]> {
  let summary = "causal attention of every query head over its layer's cache";
  let description = [{
    Scores are scale * q . k, then cap * tanh(score / cap) where `softcap` is not 0, then a softmax in which `sinks` (one logit a
    head) takes part without a value. `anchors` are keys and values of `anchor_count` more positions of each key/value head,
    scored by the queries of `still` without cap. `group_windows` are the positions visible to each key/value head.

    ```mlir
    kernel.attention %q cache(@kv0) act(%a : !kernel.buffer<q8a, 576>)
      {heads = 9 : i64, head_dim = 64 : i64, scale = 0.125 : f32} : !kernel.buffer<f32, 576>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$q, FlatSymbolRefAttr:$cache,
      OptionalAttr<FlatSymbolRefAttr>:$sinks, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act, ConfinedAttr<I64Attr, [IntPositive]>:$heads,
      ConfinedAttr<I64Attr, [IntPositive]>:$head_dim, F32Attr:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
      Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$still, OptionalAttr<FlatSymbolRefAttr>:$anchor_keys,
      OptionalAttr<FlatSymbolRefAttr>:$anchor_values, DefaultValuedAttr<I64Attr, "0">:$anchor_count,
      OptionalAttr<DenseI64ArrayAttr>:$group_windows);
  let assemblyFormat = [{
    $q `cache` `(` $cache `)` oilist(`still` `(` $still `:` qualified(type($still)) `)` | `anchors` `(` $anchor_keys `,` $anchor_values `)` | `sinks` `(` $sinks `)` | `out` `(` $out `:` qualified(type($out)) `)` |
      `act` `(` $act `:` qualified(type($act)) `)`) attr-dict `:` qualified(type($q))
  }];
  let hasVerifier = 1;
}

def Kernel_LogitsOp : Kernel_StageMember<"logits"> {
  let summary = "scale and cap of the logits, in place";
  let description = [{
    logits = cap * tanh(multiplier * x / cap); `softcap` 0 = multiplier only.

    ```mlir
    kernel.logits %l {softcap = 30.0 : f32} : !kernel.buffer<f32, 256>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead, MemWrite]>:$input, DefaultValuedAttr<F32Attr, "1.0f">:$multiplier,
      DefaultValuedAttr<F32Attr, "0.0f">:$softcap);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
}

def Kernel_AddOp : Kernel_StageMember<"add", [AllTypesMatch<["a", "b", "out"]>]> {
  let summary = "out = a + b * scale";
  let description = [{
    ```mlir
    kernel.add %a, %b -> %out : !kernel.buffer<f32, 64>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$a, Arg<Kernel_F32Buffer, "", [MemRead]>:$b,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let assemblyFormat = "$a `,` $b `->` $out attr-dict `:` qualified(type($out))";
}

include "GateOps.td"
include "HadamardOps.td"
include "MoeOps.td"
include "RecurrentOps.td"
include "ResonanceOps.td"
include "OpsHeads.td"
include "Overlay.td"

#endif
