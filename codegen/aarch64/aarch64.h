#pragma once

// vec.kernel -> AArch64 machine code: the public face of this folder.

#include "codegen/aarch64/features.h"
#include "codegen/machine/machine_code.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/status.h"
#include <string>

namespace cortiq::codegen {

struct Aarch64Options {
  /// Fills every vector register with 0xAA and the caller-saved scalar ones with garbage on entry, so that a read
  /// before the first write shows.
  bool poison = false;
};

/// Machine code of `kernel` in the procedure call standard (AAPCS64), one argument: the pointer to its argument block.
/// Keeps x29 as frame pointer (`stp x29, x30, [sp, #-16]!; mov x29, sp`), keeps the callee-saved registers. Fails on
/// what the target can't do (a vector wider than 128 bits), naming the op.
StatusOr<MachineCode> emit_aarch64(vec::KernelOp kernel, const Aarch64Features& features,
                                   const Aarch64Options& options = {});

/// The code as assembly, one instruction a line with its offset and bytes, then the constants.
std::string print_aarch64_asm(const MachineCode& code);

} // namespace cortiq::codegen
