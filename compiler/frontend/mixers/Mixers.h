#pragma once

// The table of mixers: one row each.

#include "compiler/frontend/GraphBuilder.h"

namespace cortiq::compiler {

/// Builds a layer's mixer on `x`, its normed input, and gives what the residual stream adds.
using BuildMixer = mlir::Value (*)(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);

BuildMixer mixerBuilder(Mixer mixer);

mlir::Value buildAttention(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);
mlir::Value buildGatedDelta(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);
mlir::Value buildKda(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);
mlir::Value buildShortConv(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);
mlir::Value buildVmfPhase(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);
mlir::Value buildLatentAttention(GraphBuilder& graph, int64_t index, const LayerDescription& layer, mlir::Value x);

} // namespace cortiq::compiler
