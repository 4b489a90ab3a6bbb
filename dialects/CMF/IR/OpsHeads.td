// Operations of the cmf dialect on the heads of an attention, and on the head of a model.

#ifndef CORTIQ_CMF_OPS_HEADS
#define CORTIQ_CMF_OPS_HEADS

def CMF_ConcatHeadsOp : CMF_Op<"concat_heads", [Pure]> {
  let summary = "puts every head together from two parts";
  let description = [{
    Head `h` of the result is head `h` of `a`, then head `h` of `b`. With `shared` all heads have the same first part,
    and `a` is that of one head.

    ```mlir
    %k = cmf.concat_heads %rope, %nope {heads = 4 : i64, shared} : tensor<?x16xf32>, tensor<?x128xf32> -> tensor<?x192xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$a, CMF_Activations:$b, I64Attr:$heads, UnitAttr:$shared);
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "int64_t":$heads, "bool":$shared)>];
}

def CMF_HeadMatmulOp : CMF_Op<"head_matmul", [Pure, InferTypeOpAdaptor]> {
  let summary = "a linear layer of its own for every head, on encoded weights";
  let description = [{
    One weight a head, all of one shape: head `h` of the result is `weight_h` times head `h` of `x`. The activations
    enter as f32 whatever the numerics.

    ```mlir
    %y = cmf.head_matmul %x weights(%w0, %w1)
        : tensor<?x64xf32> weights(!cmf.weight<128x32, q8_0>, !cmf.weight<128x32, q8_0>)
    ```
  }];
  let arguments = (ins CMF_Activations:$x, Variadic<CMF_MatrixWeight>:$weights);
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = "$x `weights` `(` $weights `)` attr-dict `:` type($x) `weights` `(` qualified(type($weights)) `)`";
  let extraClassDeclaration = [{
    ::cortiq::cmf::WeightType getWeightType(unsigned head);
  }];
}

def CMF_ClusterLogitsOp : CMF_SameTypeOp<"cluster_logits", ["logits"]> {
  let summary = "logits of a hierarchical head";
  let description = [{
    Token `v` belongs to cluster `v / S`, where `S` is the number of logits over the number of clusters:
    `log softmax(clusters)[v / S]` plus the log softmax of `v` among the logits of its cluster.

    ```mlir
    %y = cmf.cluster_logits %logits, %clusters : tensor<?x512xf32>, tensor<?x16xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$logits, CMF_Activations:$clusters);
  let assemblyFormat = "$logits `,` $clusters attr-dict `:` type($logits) `,` type($clusters)";
}

#endif
