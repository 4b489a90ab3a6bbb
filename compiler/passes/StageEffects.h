#pragma once

// Which buffers the calls of a stage read and write.

#include "dialects/Kernel/IR/KernelDialect.h"

#include "llvm/ADT/SetVector.h"

namespace cortiq::compiler {

struct StageEffects {
  llvm::SetVector<mlir::Value> reads, writes;

  /// Of one call, or of all calls inside `op`.
  static StageEffects of(mlir::Operation* op);

  void add(const StageEffects& other);
  /// True when one side writes what the other touches, so that a barrier has to stand between them.
  bool conflictsWith(const StageEffects& other) const;
};

} // namespace cortiq::compiler
