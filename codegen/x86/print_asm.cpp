#include "codegen/machine/print_asm.h"

#include "codegen/x86/x86.h"

#include "llvm/Support/TargetSelect.h"

namespace cortiq::codegen {
namespace {

void initialise() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
}

constexpr AsmSyntax kSyntax = {.machine = "x86",
                               .triple = "x86_64-unknown-linux-gnu",
                               .features = "+avx2,+fma,+f16c,+bmi2,+avxvnni,+avx512f,+avx512bw,"
                                           "+avx512dq,+avx512vl,+avx512vnni,+avx512vbmi,+avx512bf16,"
                                           "+amx-tile,+amx-int8,+amx-bf16",
                               .variant = 1, // Intel's
                               .targets_from_end = true,
                               .smallest = 1,
                               .initialise = initialise};

} // namespace

std::string print_asm(const MachineCode& code) {
  return print_asm(code, kSyntax);
}

} // namespace cortiq::codegen
