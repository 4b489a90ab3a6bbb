// The dense block of most decoders: down(activation(gate(x)) * up(x)).

#include "compiler/frontend/feed_forward/FeedForward.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildGatedFeedForward(GraphBuilder& graph, int64_t index, Value x, Value) {
  Value gate = graph.linear(x, layerName(index, "mlp.gate_proj"));
  Value up = graph.linear(x, layerName(index, "mlp.up_proj"));
  return graph.linear(graph.gated(gate, up), layerName(index, "mlp.down_proj"));
}

} // namespace cortiq::compiler
