// LFM2's convolution between two gates.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildShortConv(GraphBuilder& graph, int64_t index, const LayerDescription&, Value x) {
  auto name = [&](StringRef suffix) { return layerName(index, "short_conv." + suffix.str()); };
  Value bcx = graph.linear(x, name("in_proj"));
  Value y = graph.create<cmf::ShortConvOp>(graph.activations(graph.model().hidden), bcx,
                                           graph.weight(name("conv.weight")), graph.nextState());
  return graph.linear(y, name("out_proj"));
}

} // namespace cortiq::compiler
