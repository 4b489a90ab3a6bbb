#pragma once

// The two parts of @forward. A model that can guess the token after the next one has a second argument, the ids that
// follow those of the first, and a second result, the logits of the tokens after those.

#include "dialects/CMF/IR/CMF.h"
#include "llvm/ADT/DenseSet.h"

namespace cortiq::cmf {

/// Which operations of @forward serve what. Weights belong to neither part.
struct DraftSection {
  /// Those that the logits do not depend on: they run by themselves, when a guess is wanted.
  llvm::DenseSet<mlir::Operation*> draft;
  /// Those of the trunk that they depend on.
  llvm::DenseSet<mlir::Operation*> stream;
  /// The values that cross from the trunk to the draft.
  llvm::SmallVector<mlir::Value> crossing;

  bool empty() const { return draft.empty(); }
};

/// Finds the parts; without a second result all is trunk.
DraftSection findDraftSection(mlir::func::FuncOp forward);

} // namespace cortiq::cmf
