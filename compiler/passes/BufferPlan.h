#pragma once

// Live ranges of a program's buffers.

#include "dialects/Kernel/IR/KernelDialect.h"

namespace cortiq::compiler {

struct LiveBuffer {
  kernel::AllocOp op;
  size_t index = 0;             ///< among the allocs of its program
  int64_t bytes = 0;            ///< a token, a multiple of 64
  int64_t offset = 0;           ///< its place, where it has one
  unsigned first = 0, last = 0; ///< stages that touch it

  bool aliveWith(const LiveBuffer& other) const { return first <= other.last && other.first <= last; }
};

/// All buffers of `program` in order. The one that it returns lives until the end; one that nobody touches has the
/// range of the first stage.
llvm::SmallVector<LiveBuffer> liveBuffers(kernel::ProgramOp program);

} // namespace cortiq::compiler
