#pragma once

#include "dialects/Vec/IR/VecDialect.h"

namespace cortiq::codegen::x86 {

/// Moves ops that take the place of a dying operand up to where their operands are complete. No point of the kernel
/// then has more live vectors than before, and a block that computes many sums side by side has far fewer. The kernel's
/// meaning and its memory accesses' order stay.
void shorten_live_ranges(vec::KernelOp kernel);

} // namespace cortiq::codegen::x86
