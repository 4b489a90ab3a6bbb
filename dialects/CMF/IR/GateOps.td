// The multiplicative gate of the cmf dialect; included at the end of Ops.td.

#ifndef CORTIQ_CMF_GATE_OPS
#define CORTIQ_CMF_GATE_OPS

def CMF_GateFunction : I32EnumAttr<"GateFunction", "what a gate's values go through", [
    I32EnumAttrCase<"sigmoid", 0>,  // 1 / (1 + e^-x)
    I32EnumAttrCase<"softplus", 1>, // max(x, 0) + ln(1 + e^-|x|)
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}
def CMF_GateFunctionAttr : CMF_EnumAttr<CMF_GateFunction, "gate_function">;

def CMF_GateOp : CMF_SameTypeOp<"gate", ["x"]> {
  let summary = "multiplies by a function of a gate";
  let description = [{
    `result[t][i] = x[t][i] * function(g[t][i / (W / G)])` with W features of `x` and G of `g`: one value for the whole
    token (G = 1), one a head or group, or one a feature (G = W). G divides W.

    ```mlir
    %y = cmf.gate %x, %g <sigmoid> : tensor<?x512xf32>, tensor<?x8xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, CMF_Activations:$g, CMF_GateFunctionAttr:$function);
  let assemblyFormat = "$x `,` $g $function attr-dict `:` type($x) `,` type($g)";
}

#endif
