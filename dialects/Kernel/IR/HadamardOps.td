// The Walsh-Hadamard transform in the kernel dialect; included at the end of Ops.td.

#ifndef CORTIQ_KERNEL_HADAMARD_OPS
#define CORTIQ_KERNEL_HADAMARD_OPS

def Kernel_HadamardOp : Kernel_StageMember<"hadamard", [AttrSizedOperandSegments]> {
  let summary = "signs and a Walsh-Hadamard transform of blocks of a row";
  let description = [{
    As `cmf.hadamard`. `out` receives the result as floats, `act` as quantized activations.

    ```mlir
    kernel.hadamard %x out(%y : !kernel.buffer<f32, 4>) {block = 4 : i64, negative = array<i1: false, true, false, false>}
      : !kernel.buffer<f32, 4>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$x, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act, ConfinedAttr<I64Attr, [IntPositive]>:$block,
      DenseBoolArrayAttr:$negative, UnitAttr:$inverse, UnitAttr:$half);
  let assemblyFormat = [{
    $x oilist(`out` `(` $out `:` qualified(type($out)) `)` | `act` `(` $act `:` qualified(type($act)) `)`)
    attr-dict `:` qualified(type($x))
  }];
  let hasVerifier = 1;
}

#endif
