// Operations of the kernel dialect on the heads of an attention, and on the head of a model.

#ifndef CORTIQ_KERNEL_OPS_HEADS
#define CORTIQ_KERNEL_OPS_HEADS

def Kernel_ConcatHeadsOp : Kernel_Op<"concat_heads", [HasParent<"StageOp">]> {
  let summary = "puts every head together from two parts";
  let description = [{
    out[head] = [a[head] | b[head]]. Where `a` is one head wide, all heads share it.

    ```mlir
    kernel.concat_heads %a, %b -> %k {heads = 4 : i64}
      : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 128>, !kernel.buffer<f32, 192>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$a, Arg<Kernel_F32Buffer, "", [MemRead]>:$b,
      Arg<Kernel_F32Buffer, "", [MemWrite]>:$out, ConfinedAttr<I64Attr, [IntPositive]>:$heads);
  let assemblyFormat = [{
    $a `,` $b `->` $out attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($out))
  }];
  let hasVerifier = 1;
}

def Kernel_ClusterLogitsOp : Kernel_Op<"cluster_logits", [HasParent<"StageOp">]> {
  let summary = "logits of a hierarchical head, in place";
  let description = [{
    logits[v] = log softmax(clusters)[v / S] + log softmax(logits of that cluster)[v % S], S logits a cluster.

    ```mlir
    kernel.cluster_logits %l, %c : !kernel.buffer<f32, 512>, !kernel.buffer<f32, 16>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead, MemWrite]>:$logits,
      Arg<Kernel_F32Buffer, "", [MemRead]>:$clusters);
  let assemblyFormat = "$logits `,` $clusters attr-dict `:` qualified(type($logits)) `,` qualified(type($clusters))";
  let hasVerifier = 1;
}

#endif
