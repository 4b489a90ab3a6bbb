// The resonance router in the kernel dialect; included at the end of Ops.td.

#ifndef CORTIQ_KERNEL_RESONANCE_OPS
#define CORTIQ_KERNEL_RESONANCE_OPS

def Kernel_ResonanceOp : Kernel_StageMember<"resonance"> {
  let summary = "scores experts by how well each explains a token";
  let description = [{
    As `cmf.resonance`; all weights are f32 vectors, a basis the `rank` rows of one behind the other.

    ```mlir
    kernel.resonance %x means [@m0, @m1] bases [@u0, @u1] biases [@b0, @b1] shells [@r1] -> %s {rank = 2 : i64}
      : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 2>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$x,
      TypedArrayAttrBase<FlatSymbolRefAttr, "weights">:$means, OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "weights">>:$bases,
      TypedArrayAttrBase<FlatSymbolRefAttr, "weights">:$biases, OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "weights">>:$shells,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$rank);
  let assemblyFormat = [{
    $x `means` $means (`bases` $bases^)? `biases` $biases (`shells` $shells^)? `->` $out attr-dict
    `:` qualified(type($x)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

#endif
