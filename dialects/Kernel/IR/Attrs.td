// Attributes and enumerations of the kernel dialect.

#ifndef CORTIQ_KERNEL_ATTRS
#define CORTIQ_KERNEL_ATTRS

include "Base.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Kernel_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::cortiq::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Form : Kernel_Enum<"Form", "form of activations",
    [I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"q8a", 1>, I32EnumAttrCase<"i32", 2>,
     I32EnumAttrCase<"q8a_bf16", 3>]>;
def Kernel_FormAttr : EnumAttr<Kernel_Dialect, Kernel_Form, "form">;

def Kernel_Layout : Kernel_Enum<"Layout", "weight layout; numbered as formats::LayoutId",
    [I32EnumAttrCase<"verbatim", 0>, I32EnumAttrCase<"r16", 1>]>;
def Kernel_LayoutAttr : EnumAttr<Kernel_Dialect, Kernel_Layout, "layout"> { let assemblyFormat = "$value"; }

def Kernel_Activation : Kernel_Enum<"Activation", "activation function; numbered as in the artifact schema",
    [I32EnumAttrCase<"silu", 0>, I32EnumAttrCase<"gelu_tanh", 1>, I32EnumAttrCase<"gelu", 2>,
     I32EnumAttrCase<"relu", 3>, I32EnumAttrCase<"situ", 4>, I32EnumAttrCase<"swigluoai", 5>]>;
def Kernel_ActivationAttr : EnumAttr<Kernel_Dialect, Kernel_Activation, "activation"> {
  let assemblyFormat = "$value";
}

def Kernel_Spec : AttrDef<Kernel_Dialect, "Spec"> {
  let mnemonic = "spec";
  let summary = "what the generator of a matrix kernel needs to know";
  let description = [{
    Codec and layout of the weights, the row length `k`, the form of the activations (`act`: `q8a` is the fast arm,
    `f32` the exact one, `q8a_bf16` that of kernels on tiles of bf16), the instruction set and the epilogue (`bias`, `res`).

    `tile = TxR` makes it the spec of one kernel: T tokens a call, R rows a group (16, or the rows of a short last
    group). Without a tile it describes a whole matrix, and `kernel-dedupe` derives the kernels from it.

    Example: `#kernel.spec<q4_k, r16, k = 576, tile = 1x16, act = q8a, isa = "x86-64-v3", res>`.
  }];
  let parameters = (ins StringRefParameter<"codec word">:$codec, "Layout":$layout, "int64_t":$k, "int64_t":$tokens,
      "int64_t":$rows, "Form":$act, StringRefParameter<"instruction set word">:$isa, "bool":$bias, "bool":$residual);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasTile() const { return getTokens() != 0; }
    /// The same spec for kernels of `tokens` tokens and `rows` rows a group.
    SpecAttr withTile(int64_t tokens, int64_t rows) const;
    /// The same spec on activations of another form.
    SpecAttr withAct(Form act) const;
  }];
}

def Kernel_Path : Kernel_Enum<"Path", "how a product with many tokens is made; numbered as codegen::Path and in the artifact schema",
    [I32EnumAttrCase<"fused", 0>, I32EnumAttrCase<"materialised", 1>, I32EnumAttrCase<"tiles", 2>, I32EnumAttrCase<"bf16", 3>]>;

def Kernel_PathAttr : AttrDef<Kernel_Dialect, "Path"> {
  let mnemonic = "path";
  let summary = "the path of a matrix product, and why";
  let description = [{
    The attribute `kernel.path` of a `kernel.call` or `kernel.expert`, by `kernel-choose-path`. `from` is the number of tokens from
    which on the path serves (0: never, the kernels of single token tiles serve all). Costs are femtoseconds of one core a
    weight and token, with as many tokens as the kernel takes; 0 is unknown.

    Example: `#kernel.path<materialised, from = 12, fused = 8300, materialised = 6600, why = "asked for">`.
  }];
  let parameters = (ins EnumParameter<Kernel_Path>:$path, "int64_t":$from, "int64_t":$fused, "int64_t":$materialised,
      StringRefParameter<"one sentence">:$why);
  let assemblyFormat = [{
    `<` $path `,` `from` `=` $from `,` `fused` `=` $fused `,` `materialised` `=` $materialised `,` `why` `=` $why `>`
  }];
}

#endif
