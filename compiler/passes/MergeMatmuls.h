#pragma once

// What cmf-fuse-qkv and cmf-fuse-gate-up share: several products of one input become one operation.

#include "dialects/CMF/IR/CMF.h"
#include "mlir/IR/PatternMatch.h"

namespace cortiq::compiler {

/// The product of one weight that gives `value`, or null. Looks through `cmf.rms_norm` and `cmf.rope` when
/// `throughHeads` is set. Products with a residual do not count: they cannot be merged.
cmf::FusedMatmulOp singleProduct(mlir::Value value, bool throughHeads);

/// Whether `products` are distinct operations with the same input and arm; null entries make it false.
bool shareInput(llvm::ArrayRef<cmf::FusedMatmulOp> products);

/// Replaces `products`, which share an input, by one operation with all their weights, in the order given. It stands
/// where the first of them in the block stood; the weights it reads move before it.
void mergeProducts(mlir::RewriterBase& rewriter, llvm::ArrayRef<cmf::FusedMatmulOp> products);

/// Brings what defines a weight operand (a cmf.weight, or a cmf.overlay with its weights) in front of `before`, where
/// it stands behind it in the same block. Null values stay.
void hoistWeight(mlir::RewriterBase& rewriter, mlir::Value weight, mlir::Operation* before);

} // namespace cortiq::compiler
