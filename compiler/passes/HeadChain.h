#pragma once

// What happens to queries, keys and values between their matrix product and attention: the part of a graph that
// `kernel.attention_prep` does in place.

#include "dialects/CMF/IR/CMF.h"

#include "mlir/Support/LogicalResult.h"

namespace cortiq::compiler {

/// The operations on the way from `root` (a matrix product's result) to an operand of attention.
struct HeadChain {
  mlir::Value root;
  cmf::RmsNormOp norm;   ///< per-head norm, or null
  cmf::RopeOp rope;      ///< rotation, or null
  bool normLast = false; ///< the norm comes after the rotation
};

/// The chain that ends in `operand`: at most one norm over heads of `headDim` and one rotation, each with no other
/// user.
HeadChain headChain(mlir::Value operand, int64_t headDim);

/// The three chains of an attention, checked to be what attention_prep can express.
struct AttentionChains {
  HeadChain q, k, v;
};
mlir::FailureOr<AttentionChains> attentionChains(cmf::AttentionOp attention);

} // namespace cortiq::compiler
