// Types of the kernel dialect.

#ifndef CORTIQ_KERNEL_TYPES
#define CORTIQ_KERNEL_TYPES

include "Attrs.td"
include "mlir/IR/AttrTypeBase.td"

def Kernel_Buffer : TypeDef<Kernel_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "one value of every token of a batch";
  let description = [{
    A region of the arena that holds `elements` numbers a token, as floats (`f32`), as 32-bit integers (`i32`) or as one
    record of quantized activations (`q8a`: int8 codes, a scale a group of 32, sums; the record form stands in
    kernel_abi.h), which the same activations in bf16 may follow (`q8a_bf16`: reads wherever `q8a` does). With `records` it holds so many such values a token.

    Example: `!kernel.buffer<f32, 576>`, `!kernel.buffer<q8a, 1536>`, `!kernel.buffer<f32, 768, records = 8>`.
  }];
  let parameters = (ins EnumParameter<Kernel_Form>:$form, "int64_t":$elements,
                        DefaultValuedParameter<"int64_t", "1">:$records);
  let assemblyFormat = "`<` $form `,` $elements (`,` `records` `=` $records^)? `>`";
  let builders = [
    TypeBuilder<(ins "Form":$form, "int64_t":$elements), [{ return Base::get($_ctxt, form, elements, 1); }]>
  ];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes that one token's value takes in the arena, a multiple of 64.
    int64_t bytesPerToken() const;
    /// Whether it holds, at its start, what `form` says.
    bool readsAs(Form form) const { return getForm() == form || (getForm() == Form::q8a_bf16 && form == Form::q8a); }
  }];
}

class Kernel_RecordsOf<string form, string words>
    : Type<And<[CPred<"::llvm::isa<::cortiq::kernel::BufferType>($_self)">,
                CPred<"::llvm::cast<::cortiq::kernel::BufferType>($_self).readsAs(::cortiq::kernel::Form::" # form # ")">]>,
           words, "::cortiq::kernel::BufferType">;
class Kernel_BufferOf<string form, string words>
    : Type<And<[Kernel_RecordsOf<form, words>.predicate,
                CPred<"::llvm::cast<::cortiq::kernel::BufferType>($_self).getRecords() == 1">]>,
           words, "::cortiq::kernel::BufferType">;

def Kernel_F32Buffer : Kernel_BufferOf<"f32", "f32 buffer">;
def Kernel_Q8Buffer : Kernel_BufferOf<"q8a", "q8a buffer">;
def Kernel_I32Buffer : Kernel_BufferOf<"i32", "i32 buffer">;
// Buffers of any number of records a token.
def Kernel_F32Records : Kernel_RecordsOf<"f32", "f32 buffer of records">;
def Kernel_Q8Records : Kernel_RecordsOf<"q8a", "q8a buffer of records">;

#endif
