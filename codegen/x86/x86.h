#pragma once

// vec.kernel -> x86 machine code: the public face of this folder.

#include "codegen/machine/machine_code.h"
#include "codegen/x86/features.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/status.h"
#include <string>

namespace cortiq::codegen {

struct X86Options {
  /// Fills every vector register with 0xAA and the caller-saved scalar ones with garbage on entry, so that a read
  /// before the first write shows.
  bool poison = false;
};

/// Machine code of `kernel` in the System V convention, one argument: the pointer to its argument block. Keeps rbp as
/// frame pointer (`push rbp; mov rbp, rsp`), keeps the callee-saved registers, ends with vzeroupper. Fails on what the
/// target can't do (a vector wider than its registers), naming the op.
StatusOr<MachineCode> emit_x86(vec::KernelOp kernel, const X86Features& features, const X86Options& options = {});

/// The code as Intel-syntax assembly, one instruction a line with its offset and bytes, then the constants. An
/// undecodable byte sequence shows as "(bad)".
std::string print_asm(const MachineCode& code);

} // namespace cortiq::codegen
