// The Walsh-Hadamard transform of the cmf dialect; included at the end of Ops.td.

#ifndef CORTIQ_CMF_HADAMARD_OPS
#define CORTIQ_CMF_HADAMARD_OPS

def CMF_HadamardOp : CMF_SameTypeOp<"hadamard", ["x"]> {
  let summary = "signs and a Walsh-Hadamard transform of blocks of features";
  let description = [{
    `H(s * x)`: each feature times its sign, -1 where `negative` says so, then every `block` features times the Hadamard
    matrix in Sylvester's order, over the root of `block`. With `inverse` it is `s * H(x)`, which undoes the former.
    With `half` the result is rounded to f16, and with `inverse` the operand too.

    ```mlir
    %y = cmf.hadamard %x {block = 4 : i64, negative = array<i1: false, true, false, false>} : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, I64Attr:$block, DenseBoolArrayAttr:$negative, UnitAttr:$inverse, UnitAttr:$half);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

#endif
