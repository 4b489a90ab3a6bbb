// The resonance router of the cmf dialect; included at the end of Ops.td.

#ifndef CORTIQ_CMF_RESONANCE_OPS
#define CORTIQ_CMF_RESONANCE_OPS

def CMF_ResonanceOp : CMF_Op<"resonance", [Pure, AttrSizedOperandSegments]> {
  let summary = "scores experts by how well each explains a token";
  let description = [{
    Each expert has a mean, an orthonormal basis of directions around it (`bases`, all of one number of rows, or none) and a
    bias: `result[t][e] = bias_e - error` with `error = |x[t] - mean_e|^2 - |basis_e * (x[t] - mean_e)|^2`. The last
    experts have `shells`: a score is minus infinity where the error is larger.

    ```mlir
    %s = cmf.resonance %x means(%m0, %m1) bases(%u0, %u1) biases(%b0, %b1) shells(%r1)
        : (tensor<?x64xf32>, !cmf.weight<64, f32>, …) -> tensor<?x2xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    Variadic<CMF_VectorWeight>:$means,
    Variadic<CMF_MatrixWeight>:$bases,
    Variadic<CMF_VectorWeight>:$biases,
    Variadic<CMF_VectorWeight>:$shells
  );
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = [{
    $x `means` `(` $means `)` (`bases` `(` $bases^ `)`)? `biases` `(` $biases `)` (`shells` `(` $shells^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif
