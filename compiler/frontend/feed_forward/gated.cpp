// The dense block of most decoders: down(activation(gate(x)) * up(x)), and the sum of several such blocks where a model
// keeps some of its neurons in task tubes.

#include "compiler/frontend/feed_forward/FeedForward.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

Value gatedBlock(GraphBuilder& graph, int64_t index, const std::string& suffix, Value x) {
  auto product = [&](Value input, const char* role) {
    return graph.linear(input, layerName(index, std::string("mlp.") + role + suffix));
  };
  Value gate = product(x, "gate_proj"), up = product(x, "up_proj");
  return product(graph.gated(gate, up), "down_proj");
}

} // namespace

Value buildGatedFeedForward(GraphBuilder& graph, int64_t index, Value x, Value) {
  Value sum = gatedBlock(graph, index, "", x);
  for (int64_t tube = 1;; ++tube) {
    const std::string suffix = ".tube" + std::to_string(tube);
    if (!graph.model().find(layerName(index, "mlp.gate_proj" + suffix + ".weight")))
      return sum;
    sum = graph.create<cmf::AddOp>(sum, gatedBlock(graph, index, suffix, x));
  }
}

} // namespace cortiq::compiler
