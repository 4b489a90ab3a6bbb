#pragma once

// A listing of machine code through LLVM's disassembler: what --emit=asm shows.

#include <cstdint>
#include <string>

#include "codegen/machine/machine_code.h"

namespace cortiq::codegen {

/// How a machine's code is read and written. One constant a machine.
struct AsmSyntax {
  const char* machine;   ///< for people
  const char* triple;    ///< as LLVM names it
  const char* features;  ///< all that kernels may use
  unsigned variant;      ///< LLVM's number of the syntax
  bool targets_from_end; ///< branch targets count from the end of their instruction, not from its start
  uint64_t smallest;     ///< bytes to go on by where there is no instruction
  void (*initialise)();  ///< makes LLVM know the machine
};

/// One line an instruction, then the constants. Where loops begin and end stand comments that number them:
/// "; loop 1: 96 times, step 32", "; end of loop 1". Where only the run knows how often: "; loop 0: to args[56], step
/// 1" if the count stands in the arguments at that offset (formats/artifact/kernel_abi.h), else "; loop 0: step 1".
std::string print_asm(const MachineCode& code, const AsmSyntax& syntax);

} // namespace cortiq::codegen
