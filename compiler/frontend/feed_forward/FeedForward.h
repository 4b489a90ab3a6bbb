#pragma once

// The table of feed-forward blocks: one row each.

#include "compiler/frontend/GraphBuilder.h"

namespace cortiq::compiler {

/// Builds a layer's feed-forward block on `x`, its normed input. `h` is the residual stream in front of that norm, for
/// blocks that read it as well.
using BuildFeedForward = mlir::Value (*)(GraphBuilder& graph, int64_t index, mlir::Value x, mlir::Value h);

BuildFeedForward feedForwardBuilder(FeedForward kind);

mlir::Value buildDualExperts(GraphBuilder& graph, int64_t index, mlir::Value x, mlir::Value h);
mlir::Value buildExperts(GraphBuilder& graph, int64_t index, mlir::Value x, mlir::Value h);
mlir::Value buildGatedFeedForward(GraphBuilder& graph, int64_t index, mlir::Value x, mlir::Value h);
mlir::Value buildPlainFeedForward(GraphBuilder& graph, int64_t index, mlir::Value x, mlir::Value h);

} // namespace cortiq::compiler
