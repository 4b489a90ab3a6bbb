#pragma once

// Random kernels over the whole dialect: nested loops, loops of no trips, tails, more live values than registers.

#include "test/unit/x86/kernel_harness.h"

namespace cortiq::testing {

inline constexpr size_t kInputBytes = 4096;
inline constexpr size_t kOutputBytes = 8192;

/// A kernel of about `ops` ops on vectors of `bits`; the same seed gives the same kernel. It reads the inputs that
/// fill_inputs makes, with a count below 8 and a stride below 5.
mlir::OwningOpRef<mlir::ModuleOp> random_program(uint32_t seed, unsigned bits, int ops);

/// in0: random bytes without -128; in1: floats, then half-precision numbers, none of them infinite or NaN.
void fill_inputs(uint32_t seed, GuardedBuffer& in0, GuardedBuffer& in1);

} // namespace cortiq::testing
