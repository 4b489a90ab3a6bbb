#pragma once

// The plain meaning of a vec.kernel: scalar C++ on real memory, one function an op. Generated code is held against it.

#include "dialects/Vec/IR/VecDialect.h"

namespace cortiq::vec {

/// Runs `kernel` on the argument block at `args`, as a call of its machine code would: the block's pointers are
/// followed and written through. Slow. Fails, with a diagnostic at the op, on an op it has no row for.
llvm::LogicalResult interpretKernel(KernelOp kernel, const void* args);

} // namespace cortiq::vec
