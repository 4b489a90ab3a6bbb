// Operations with recurrent state. Ops.td includes this file. Each works on the tokens of a batch in their order and
// leaves its state behind for the next batch; the arithmetic is that of the cmf operation of the same name.

#ifndef CORTIQ_KERNEL_RECURRENT_OPS
#define CORTIQ_KERNEL_RECURRENT_OPS

def Kernel_StateOp : Kernel_TableOp<"state"> {
  let summary = "what one operation carries from token to token";
  let description = [{
    `elements` numbers (f32), all zero at the start of a sequence.

    ```mlir
    kernel.state @state0 {elements = 768 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ConfinedAttr<I64Attr, [IntPositive]>:$elements);
  let assemblyFormat = "$sym_name attr-dict";
}

def Kernel_CausalConvOp : Kernel_StageMember<"causal_conv"> {
  let summary = "a depthwise convolution over time";
  let description = [{
    The state holds the last inputs, `taps - 1` rows. The weight has one row of `taps` numbers a channel.

    ```mlir
    kernel.causal_conv %x taps(@w3) state(@state0) -> %u {taps = 4 : i64, silu}
      : !kernel.buffer<f32, 256>, !kernel.buffer<f32, 256>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, FlatSymbolRefAttr:$weight,
      FlatSymbolRefAttr:$state, Arg<Kernel_F32Buffer, "", [MemWrite]>:$out,
      ConfinedAttr<I64Attr, [IntMinValue<2>]>:$taps, UnitAttr:$silu);
  let assemblyFormat = [{
    $input `taps` `(` $weight `)` `state` `(` $state `)` `->` $out attr-dict
    `:` qualified(type($input)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_ShortConvOp : Kernel_StageMember<"short_conv"> {
  let summary = "a convolution between two gates";
  let description = [{
    The input holds [B | C | X]; the output is C * conv(B * X). The state holds the last rows of B * X.

    ```mlir
    kernel.short_conv %x taps(@w3) state(@state0) -> %y {taps = 3 : i64}
      : !kernel.buffer<f32, 384>, !kernel.buffer<f32, 128>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$input, FlatSymbolRefAttr:$weight,
      FlatSymbolRefAttr:$state, Arg<Kernel_F32Buffer, "", [MemWrite]>:$out,
      ConfinedAttr<I64Attr, [IntMinValue<2>]>:$taps);
  let assemblyFormat = [{
    $input `taps` `(` $weight `)` `state` `(` $state `)` `->` $out attr-dict
    `:` qualified(type($input)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_GatedDeltaOp : Kernel_StageMember<"gated_delta"> {
  let summary = "linear attention by the gated delta rule";
  let description = [{
    ```mlir
    kernel.gated_delta %qkv, %z, %a, %b decay(@w4) dt_bias(@w5) norm(@w6) state(@state1) -> %y
      {key_heads = 2 : i64, value_heads = 4 : i64, key_dim = 32 : i64, value_dim = 32 : i64, eps = 1.0e-6 : f32}
      : !kernel.buffer<f32, 256>, !kernel.buffer<f32, 128>, !kernel.buffer<f32, 4>, !kernel.buffer<f32, 4>,
        !kernel.buffer<f32, 128>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$qkv, Arg<Kernel_F32Buffer, "", [MemRead]>:$z,
      Arg<Kernel_F32Buffer, "", [MemRead]>:$a, Arg<Kernel_F32Buffer, "", [MemRead]>:$b, FlatSymbolRefAttr:$decay,
      FlatSymbolRefAttr:$dt_bias, FlatSymbolRefAttr:$norm, FlatSymbolRefAttr:$state,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, ConfinedAttr<I64Attr, [IntPositive]>:$key_heads,
      ConfinedAttr<I64Attr, [IntPositive]>:$value_heads, ConfinedAttr<I64Attr, [IntPositive]>:$key_dim,
      ConfinedAttr<I64Attr, [IntPositive]>:$value_dim, F32Attr:$eps, UnitAttr:$tiled, UnitAttr:$rates,
      UnitAttr:$sigmoid_gate);
  let assemblyFormat = [{
    $qkv `,` $z `,` $a `,` $b `decay` `(` $decay `)` `dt_bias` `(` $dt_bias `)` `norm` `(` $norm `)`
    `state` `(` $state `)` `->` $out attr-dict `:` qualified(type($qkv)) `,` qualified(type($z)) `,`
    qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_KdaOp : Kernel_StageMember<"kda"> {
  let summary = "linear attention by the delta rule with a decay a channel";
  let description = [{
    Without `lower_bound` the decay is the softplus form.

    ```mlir
    kernel.kda %q, %k, %v, %f, %b, %g decay(@w4) dt_bias(@w5) norm(@w6) state(@state3) -> %y
      {heads = 2 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f32}
      : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>,
        !kernel.buffer<f32, 2>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$q, Arg<Kernel_F32Buffer, "", [MemRead]>:$k,
      Arg<Kernel_F32Buffer, "", [MemRead]>:$v, Arg<Kernel_F32Buffer, "", [MemRead]>:$f,
      Arg<Kernel_F32Buffer, "", [MemRead]>:$b, Arg<Kernel_F32Buffer, "", [MemRead]>:$gate, FlatSymbolRefAttr:$decay,
      FlatSymbolRefAttr:$dt_bias, FlatSymbolRefAttr:$norm, FlatSymbolRefAttr:$state,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, ConfinedAttr<I64Attr, [IntPositive]>:$heads,
      ConfinedAttr<I64Attr, [IntPositive]>:$key_dim, ConfinedAttr<I64Attr, [IntPositive]>:$value_dim, F32Attr:$eps,
      OptionalAttr<F32Attr>:$lower_bound);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $f `,` $b `,` $gate `decay` `(` $decay `)` `dt_bias` `(` $dt_bias `)` `norm` `(` $norm `)`
    `state` `(` $state `)` `->` $out attr-dict `:` qualified(type($q)) `,` qualified(type($k)) `,`
    qualified(type($v)) `,` qualified(type($f)) `,` qualified(type($b)) `,` qualified(type($gate)) `,`
    qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_VmfPhaseOp : Kernel_StageMember<"vmf_phase"> {
  let summary = "linear attention on phases";
  let description = [{
    ```mlir
    kernel.vmf_phase %q, %k, %v decay(@w4) state(@state0) -> %y {heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
      : !kernel.buffer<f32, 8>, !kernel.buffer<f32, 8>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$theta_q, Arg<Kernel_F32Buffer, "", [MemRead]>:$theta_k,
      Arg<Kernel_F32Buffer, "", [MemRead]>:$v, Arg<Optional<Kernel_F32Buffer>, "", [MemRead]>:$gate,
      FlatSymbolRefAttr:$decay, FlatSymbolRefAttr:$state, Arg<Kernel_F32Buffer, "", [MemWrite]>:$out,
      ConfinedAttr<I64Attr, [IntPositive]>:$heads, ConfinedAttr<I64Attr, [IntPositive]>:$phases,
      ConfinedAttr<I64Attr, [IntPositive]>:$value_dim, UnitAttr:$delta);
  let assemblyFormat = [{
    $theta_q `,` $theta_k `,` $v (`gate` `(` $gate^ `:` qualified(type($gate)) `)`)? `decay` `(` $decay `)`
    `state` `(` $state `)` `->` $out attr-dict `:` qualified(type($theta_q)) `,` qualified(type($theta_k)) `,`
    qualified(type($v)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

#endif
