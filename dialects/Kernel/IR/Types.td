// Types of the kernel dialect.

#ifndef CORTIQ_KERNEL_TYPES
#define CORTIQ_KERNEL_TYPES

include "Attrs.td"
include "mlir/IR/AttrTypeBase.td"

def Kernel_Buffer : TypeDef<Kernel_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "one value of every token of a batch";
  let description = [{
    A region of the arena that holds `elements` numbers a token, as floats (`f32`) or as one record of quantized
    activations (`q8a`: int8 codes, a scale a group of 32, sums; the record form stands in kernel_abi.h).

    Example: `!kernel.buffer<f32, 576>`, `!kernel.buffer<q8a, 1536>`.
  }];
  let parameters = (ins EnumParameter<Kernel_Form>:$form, "int64_t":$elements);
  let assemblyFormat = "`<` $form `,` $elements `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes that one token's value takes in the arena, a multiple of 64.
    int64_t bytesPerToken() const;
  }];
}

class Kernel_BufferOf<string form, string words>
    : Type<And<[CPred<"::llvm::isa<::cortiq::kernel::BufferType>($_self)">,
                CPred<"::llvm::cast<::cortiq::kernel::BufferType>($_self).getForm() == ::cortiq::kernel::Form::" # form>]>,
           words, "::cortiq::kernel::BufferType">;

def Kernel_F32Buffer : Kernel_BufferOf<"f32", "f32 buffer">;
def Kernel_Q8Buffer : Kernel_BufferOf<"q8a", "q8a buffer">;

#endif
