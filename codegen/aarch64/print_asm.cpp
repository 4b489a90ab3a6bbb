#include "codegen/machine/print_asm.h"

#include "codegen/aarch64/aarch64.h"

#include "llvm/Support/TargetSelect.h"

namespace cortiq::codegen {
namespace {

void initialise() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64Disassembler();
}

constexpr AsmSyntax kSyntax = {.machine = "AArch64",
                               .triple = "aarch64-unknown-linux-gnu",
                               .features = "+dotprod,+i8mm,+fullfp16",
                               .variant = 0, // the one there is
                               .targets_from_end = false,
                               .smallest = 4,
                               .initialise = initialise};

} // namespace

std::string print_aarch64_asm(const MachineCode& code) {
  return print_asm(code, kSyntax);
}

} // namespace cortiq::codegen
