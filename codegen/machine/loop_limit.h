#pragma once

// What a loop of unknown count counts up to.

#include "dialects/Vec/IR/VecDialect.h"

namespace cortiq::codegen {

/// Offset in the argument block of the number that a loop counts to from 0; -1 where its limits are others.
inline int64_t limit_field(vec::LoopOp loop, std::optional<int64_t> lo) {
  auto load = loop.getHi().getDefiningOp<vec::LoadIndexOp>();
  const auto block = load ? llvm::dyn_cast<mlir::BlockArgument>(load.getPtr()) : mlir::BlockArgument();
  const bool argument = block && llvm::isa<vec::KernelOp>(block.getOwner()->getParentOp());
  return argument && lo == 0 ? static_cast<int64_t>(load.getOffset()) : -1;
}

} // namespace cortiq::codegen
