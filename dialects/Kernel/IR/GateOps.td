// The multiplicative gate of the kernel dialect; included at the end of Ops.td.

#ifndef CORTIQ_KERNEL_GATE_OPS
#define CORTIQ_KERNEL_GATE_OPS

def Kernel_GateFunction : Kernel_Enum<"GateFunction", "function of a gate; numbered as in the artifact schema",
    [I32EnumAttrCase<"sigmoid", 0>, I32EnumAttrCase<"softplus", 1>]>;
def Kernel_GateFunctionAttr : EnumAttr<Kernel_Dialect, Kernel_GateFunction, "gate_function"> {
  let assemblyFormat = "`<` $value `>`";
}

def Kernel_GateOp : Kernel_StageMember<"gate", [AttrSizedOperandSegments]> {
  let summary = "a row multiplied by a function of its gate";
  let description = [{
    result[i] = x[i] * function(g[i / (W / G)]): G gates a token, each for W / G features. `out` receives it as floats and
    may be `x`, `act` as quantized activations.

    ```mlir
    kernel.gate %x, %g <sigmoid> act(%a : !kernel.buffer<q8a, 64>) : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 4>
    ```
  }];
  let arguments = (ins Arg<Kernel_F32Buffer, "", [MemRead]>:$x, Arg<Kernel_F32Buffer, "", [MemRead]>:$g,
      Kernel_GateFunctionAttr:$function, Arg<Optional<Kernel_F32Buffer>, "", [MemWrite]>:$out,
      Arg<Optional<Kernel_Q8Buffer>, "", [MemWrite]>:$act);
  let assemblyFormat = [{
    $x `,` $g $function oilist(`out` `(` $out `:` qualified(type($out)) `)` | `act` `(` $act `:` qualified(type($act)) `)`)
    attr-dict `:` qualified(type($x)) `,` qualified(type($g))
  }];
  let hasVerifier = 1;
}

#endif
