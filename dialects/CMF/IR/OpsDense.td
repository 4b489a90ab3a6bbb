// Operations of the cmf dialect that only some dense decoders need.

#ifndef CORTIQ_CMF_OPS_DENSE
#define CORTIQ_CMF_OPS_DENSE

def CMF_LayerNormOp : CMF_SameTypeOp<"layer_norm", ["x"], [AttrSizedOperandSegments]> {
  let summary = "LayerNorm of whole rows";
  let description = [{
    `y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias`. A bias stands only behind a weight.

    ```mlir
    %n = cmf.layer_norm %x weight(%w) bias(%b) {eps = 1.0e-5 : f64}
        : tensor<?x576xf32> weight(!cmf.weight<576, f32>) bias(!cmf.weight<576, f32>)
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    Optional<CMF_VectorWeight>:$weight,
    Optional<CMF_VectorWeight>:$bias,
    F64Attr:$eps
  );
  let assemblyFormat = [{
    $x (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)? attr-dict
    `:` type($x) (`weight` `(` qualified(type($weight))^ `)`)? (`bias` `(` qualified(type($bias))^ `)`)?
  }];
}

def CMF_ActivateOp : CMF_SameTypeOp<"activate", ["x"]> {
  let summary = "the activation of a feed-forward block without a gate";
  let description = [{
    `activation(x)`, element by element; not for activations that change the other factor of a gate.

    ```mlir
    %a = cmf.activate gelu_tanh(%x) : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, CMF_ActivationAttr:$activation);
  let assemblyFormat = "custom<Activation>($activation) `(` $x `)` attr-dict `:` type($x)";
}

#endif
