#pragma once

// The tables of a kernel module while a graph is lowered to it: each entry is made on first need and found again after.

#include "dialects/CMF/IR/CMF.h"
#include "dialects/Kernel/IR/KernelDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace cortiq::compiler {

/// Makes table entries at the end of a module.
class KernelTables {
public:
  explicit KernelTables(mlir::ModuleOp module);

  /// The entry of a matrix, in the layout that its weight op has.
  mlir::FlatSymbolRefAttr matrix(cmf::WeightOp weight);
  /// The f32 entry of a vector whose values get `add` added.
  mlir::FlatSymbolRefAttr vector(cmf::WeightOp weight, float add = 0.0f);
  mlir::FlatSymbolRefAttr rope(cmf::RopeAttr rope);
  /// Says that `weight`, which has no source, is mixed of `parts`: of each the index of its skill, -1 for the model's
  /// own.
  void setBlend(cmf::WeightOp weight, llvm::ArrayRef<std::pair<int64_t, cmf::WeightOp>> parts);
  /// A cache of its own for the layer of `attention`.
  mlir::FlatSymbolRefAttr cache(cmf::AttentionOp attention);
  /// The entry of a recurrent operation's state.
  mlir::FlatSymbolRefAttr state(const cmf::RecurrentState& state);

private:
  mlir::FlatSymbolRefAttr addWeight(cmf::WeightOp weight, llvm::StringRef codec, kernel::Layout layout, float add);
  std::string freshName(llvm::StringRef wanted);

  mlir::OpBuilder builder_;
  llvm::DenseMap<std::pair<mlir::Operation*, uint32_t>, mlir::FlatSymbolRefAttr>
      weights_; // by weight op and bits of `add`
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> ropes_;
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<std::pair<int64_t, cmf::WeightOp>>> blends_;
  llvm::DenseMap<mlir::Operation*, mlir::FlatSymbolRefAttr> caches_;
  llvm::DenseMap<int64_t, mlir::FlatSymbolRefAttr> states_; ///< by state number
  llvm::StringSet<> names_;
};

} // namespace cortiq::compiler
