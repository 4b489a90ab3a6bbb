// The block of decoders without a gate: down(activation(up(x))).

#include "compiler/frontend/feed_forward/FeedForward.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildPlainFeedForward(GraphBuilder& graph, int64_t index, Value x, Value) {
  Value up = graph.linear(x, layerName(index, "mlp.up_proj"));
  Value active =
      graph.create<cmf::ActivateOp>(up, cmf::ActivationAttr::get(graph.ops().getContext(), graph.model().activation));
  return graph.linear(active, layerName(index, "mlp.down_proj"));
}

} // namespace cortiq::compiler
