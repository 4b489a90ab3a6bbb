// Mixture of experts in the kernel dialect; included at the end of Ops.td.
//
// A pair is one choice of one token. Buffers with `records = k` hold k values a token; once the pairs are sorted by
// expert, value p of such a buffer belongs to pair p, so that the tokens of one expert follow each other.

#ifndef CORTIQ_KERNEL_MOE_OPS
#define CORTIQ_KERNEL_MOE_OPS

def Kernel_Scoring : Kernel_Enum<"Scoring", "scores of experts; numbered as in the artifact schema",
    [I32EnumAttrCase<"softmax", 0>, I32EnumAttrCase<"sigmoid", 1>, I32EnumAttrCase<"softmax_selected", 2>,
     I32EnumAttrCase<"sqrt_softplus", 3>]>;
def Kernel_ScoringAttr : EnumAttr<Kernel_Dialect, Kernel_Scoring, "scoring"> { let assemblyFormat = "`<` $value `>`"; }

def Kernel_MoeRouteOp : Kernel_StageMember<"moe_route"> {
  let summary = "chooses the experts of every token";
  let description = [{
    From one logit an expert to the k numbers (`ids`) and weights of those chosen, by falling score; k is the length of
    both. `bias` counts for the choice only, `scales` multiplies finished weights. The weights' sum is divided by as
    max(sum + norm_epsilon, norm_minimum) where `normalize` is set. `groups` and `groups_used` limit the choice.

    ```mlir
    kernel.moe_route %l <sigmoid> bias(@b) -> %ids, %w {normalize, norm_epsilon = 1.0e-6 : f64}
      : !kernel.buffer<f32, 128>, !kernel.buffer<i32, 8>, !kernel.buffer<f32, 8>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$logits, Kernel_ScoringAttr:$scoring,
      OptionalAttr<FlatSymbolRefAttr>:$bias, OptionalAttr<FlatSymbolRefAttr>:$scales,
      Arg<Kernel_I32Buffer, "", [MemWrite]>:$ids, Arg<Kernel_F32Buffer, "", [MemWrite]>:$weights,
      UnitAttr:$normalize, DefaultValuedAttr<F64Attr, "0.0">:$norm_epsilon, DefaultValuedAttr<F64Attr, "0.0">:$norm_minimum,
      DefaultValuedAttr<F64Attr, "1.0">:$scale, DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$groups,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$groups_used);
  let assemblyFormat = [{
    $logits $scoring (`bias` `(` $bias^ `)`)? (`scales` `(` $scales^ `)`)? `->` $ids `,` $weights attr-dict
    `:` qualified(type($logits)) `,` qualified(type($ids)) `,` qualified(type($weights))
  }];
  let hasVerifier = 1;
}

def Kernel_MoePlanOp : Kernel_StageMember<"moe_plan"> {
  let summary = "sorts the pairs of a batch by expert";
  let description = [{
    A stable counting sort. With E experts, k choices and n = k * tokens pairs the plan holds, in 32-bit words from the
    place of the batch's first token on: the number of experts in use; their numbers, ascending (E words); the first pair
    of each expert and the end of the last (E + 1); the token of each pair (n); the pair of each choice (n). That is at
    most 2 E + 2 + 2 k words a token, the buffer's length.

    ```mlir
    kernel.moe_plan %ids -> %plan {experts = 128 : i64} : !kernel.buffer<i32, 8>, !kernel.buffer<i32, 274>
    ```
  }];
  let arguments = (ins Arg<Kernel_I32Buffer, "", [MemRead]>:$ids, Arg<Kernel_I32Buffer, "", [MemWrite]>:$plan,
      ConfinedAttr<I64Attr, [IntPositive]>:$experts);
  let assemblyFormat = "$ids `->` $plan attr-dict `:` qualified(type($ids)) `,` qualified(type($plan))";
  let hasVerifier = 1;
}

def Kernel_MoeGatherOp : Kernel_StageMember<"moe_gather", [AttrSizedOperandSegments]> {
  let summary = "activations in the order of the pairs";
  let description = [{
    Copies each pair's token: `x` to `out`, `qx` to `act`. With `column_scales`, one entry an expert (a weight with column
    scales, or unit), `out` and `act` receive `x` times the column scales of the pair's expert instead, and pairs of
    experts without an entry are left alone. Without column scales a batch of one token is not copied: its experts
    read the token's own value; a batch of a few tokens need not be, where all that read the copies know the token.

    ```mlir
    kernel.moe_gather %plan q8a(%a : !kernel.buffer<q8a, 64>) act(%p : !kernel.buffer<q8a, 64, records = 2>)
      {experts = 4 : i64} : !kernel.buffer<i32, 14>
    ```
  }];
  let arguments = (ins Arg<Kernel_I32Buffer, "", [MemRead]>:$plan, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$x,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemRead]>:$qx, Arg<Optional<Kernel_F32Records>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Records>, "", [MemWrite]>:$act, ConfinedAttr<I64Attr, [IntPositive]>:$experts,
      OptionalAttr<ArrayAttr>:$column_scales);
  let assemblyFormat = [{
    $plan oilist(`f32` `(` $x `:` qualified(type($x)) `)` | `q8a` `(` $qx `:` qualified(type($qx)) `)` |
      `out` `(` $out `:` qualified(type($out)) `)` | `act` `(` $act `:` qualified(type($act)) `)`)
    attr-dict `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

def Kernel_MoeMatmulOp : Kernel_StageMember<"moe_matmul", [SingleBlock, NoTerminator, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "one matrix of every expert in use, with its pairs";
  let description = [{
    Holds one `kernel.expert` an expert, in their order. All experts in use are cut into blocks of rows that the workers take
    from one cursor.

    ```mlir
    kernel.moe_matmul %plan {
      kernel.expert @w0(%p) -> %g <q4_k, r16, k = 512, act = q8a, isa = "x86-64-v3">
        : (!kernel.buffer<q8a, 512, records = 2>) -> !kernel.buffer<f32, 64, records = 2>
      …
    } : !kernel.buffer<i32, 14>
    ```

    `gates` are buffers that the stage behind this one fills with the gates of what is computed here. A runtime may fill them
    block by block already in this stage, so they keep clear of what it reads.
  }];
  let arguments = (ins Arg<Kernel_I32Buffer, "", [MemRead]>:$plan,
      Arg<Variadic<Kernel_Buffer>, "", [MemWrite]>:$gates);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $plan (`gates` `(` $gates^ `:` qualified(type($gates)) `)`)? attr-dict-with-keyword $body `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

def Kernel_ExpertOp : Kernel_Op<"expert", [AttrSizedOperandSegments, HasParent<"MoeMatmulOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the product of one expert's matrix with its pairs, by generated kernels";
  let description = [{
    out[p][r] = W[r] . input[p] [+ bias[r]] [+ sum[p][r]] for the pairs p of this expert. A batch of one token reads `token`, where
    there is one, in place of the pairs' copies; one of a few tokens may. Values may be shorter than the buffers' records: experts differ in width.
    `spec`, `kernels` and `tails` are as in `kernel.call`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, Arg<Kernel_Buffer, "", [MemRead]>:$input,
      Arg<Optional<Kernel_Buffer>, "", [MemRead]>:$token, OptionalAttr<FlatSymbolRefAttr>:$bias,
      Arg<Optional<Kernel_F32Records>, "", [MemRead]>:$sum, Arg<Kernel_F32Records, "", [MemWrite]>:$out, Kernel_Spec:$spec,
      OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "kernel symbols">>:$kernels,
      OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "kernel symbols">>:$tails);
  let assemblyFormat = [{
    $weight `(` $input `)` (`token` `(` $token^ `:` qualified(type($token)) `)`)? (`bias` `(` $bias^ `)`)?
    (`sum` `(` $sum^ `:` qualified(type($sum)) `)`)? `->` $out $spec (`kernels` $kernels^)? (`tails` $tails^)? attr-dict
    `:` `(` qualified(type($input)) `)` `->` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_MoeGluOp : Kernel_StageMember<"moe_glu", [AttrSizedOperandSegments]> {
  let summary = "the gates of the pairs, in the form that the down matrices read";
  let description = [{
    a = activation(gate) * up of each pair, over the width of its expert (`widths`), times the column scales of its expert's
    down matrix where `column_scales` has an entry. `out` receives it as floats, `act` as quantized activations.
  }];
  let arguments = (ins Kernel_ActivationAttr:$activation, Arg<Kernel_I32Buffer, "", [MemRead]>:$plan,
      Arg<Kernel_F32Records, "", [MemRead]>:$gate, Arg<Kernel_F32Records, "", [MemRead]>:$up,
      Arg<Optional<Kernel_F32Records>, "", [MemWrite]>:$out, Arg<Optional<Kernel_Q8Records>, "", [MemWrite]>:$act,
      DenseI64ArrayAttr:$widths, OptionalAttr<ArrayAttr>:$column_scales, DefaultValuedAttr<F32Attr, "0.0f">:$alpha,
      DefaultValuedAttr<F32Attr, "0.0f">:$limit);
  let assemblyFormat = [{
    custom<ActivationWord>($activation) $plan `,` $gate `,` $up oilist(`out` `(` $out `:` qualified(type($out)) `)` |
      `act` `(` $act `:` qualified(type($act)) `)`) attr-dict `:` qualified(type($plan)) `,` qualified(type($gate)) `,` qualified(type($up))
  }];
  let hasVerifier = 1;
}

def Kernel_MoeCombineOp : Kernel_StageMember<"moe_combine", [AttrSizedOperandSegments]> {
  let summary = "the weighed sum of a token's experts, with what is added to it";
  let description = [{
    out[t] = residual[t] + (sum over j of weights[t][j] * pairs[pair of (t, j)] + sigmoid(shared_gate[t]) * shared[t]); what
    is absent counts as nothing, an absent gate as 1. The sum runs in the order of j.
  }];
  let arguments = (ins Arg<Kernel_I32Buffer, "", [MemRead]>:$plan, Arg<Kernel_F32Buffer, "", [MemRead]>:$weights,
      Arg<Kernel_F32Records, "", [MemRead]>:$pairs, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$shared,
      Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$shared_gate, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$residual,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, ConfinedAttr<I64Attr, [IntPositive]>:$experts);
  let assemblyFormat = [{
    $plan `,` $weights `,` $pairs oilist(`shared` `(` $shared `:` qualified(type($shared)) `)` |
      `shared_gate` `(` $shared_gate `:` qualified(type($shared_gate)) `)` |
      `residual` `(` $residual `:` qualified(type($residual)) `)`) `->` $out attr-dict
    `:` qualified(type($plan)) `,` qualified(type($weights)) `,` qualified(type($pairs)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

#endif
