#pragma once

// What the verifiers of the kernel dialect's operations share.

#include "dialects/Kernel/IR/KernelDialect.h"

namespace cortiq::kernel {

/// Looks `ref` up in the module's table of T and says what is wrong if it is not there.
template <class T>
mlir::FailureOr<T> lookUp(mlir::Operation* op, mlir::SymbolTableCollection& tables, mlir::FlatSymbolRefAttr ref,
                          llvm::StringRef what) {
  T found = tables.lookupNearestSymbolFrom<T>(op->getParentOfType<mlir::ModuleOp>(), ref);
  if (!found)
    return op->emitOpError() << "names " << ref << ", which is no " << what << " of this module", mlir::failure();
  return found;
}

/// An optional f32 vector of `elements` values.
mlir::LogicalResult checkVector(mlir::Operation* op, mlir::SymbolTableCollection& tables,
                                std::optional<mlir::FlatSymbolRefAttr> ref, int64_t elements, llvm::StringRef what);

/// Whether all buffers that are there have one length.
mlir::LogicalResult checkSameElements(mlir::Operation* op, llvm::ArrayRef<mlir::Value> values);

/// Whether at least one of `outputs` is there.
mlir::LogicalResult checkSomeOutput(mlir::Operation* op, llvm::ArrayRef<mlir::Value> outputs);

/// Whether buffer `v` holds `elements` elements.
mlir::LogicalResult checkBuffer(mlir::Operation* op, mlir::Value v, int64_t elements, llvm::StringRef what);

/// Whether `spec` describes the matrix.
mlir::LogicalResult checkSpecFits(mlir::Operation* op, WeightOp weight, SpecAttr spec);

/// Whether `kernels` are those of `spec` for groups of 16 of the matrix's `rows` rows, by ascending token tile, and
/// `tails` those for the rest; null lists are not made yet.
mlir::LogicalResult checkKernels(mlir::Operation* op, mlir::SymbolTableCollection& tables, SpecAttr spec, int64_t rows,
                                 mlir::ArrayAttr kernels, mlir::ArrayAttr tails);

} // namespace cortiq::kernel
