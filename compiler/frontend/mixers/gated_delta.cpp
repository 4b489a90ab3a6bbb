// Gated delta linear attention (CMF specification 3.9): projections, a short convolution over time, the delta rule.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildGatedDelta(GraphBuilder& graph, int64_t index, const LayerDescription&, Value x) {
  const LinearAttention& sizes = graph.model().linear;
  auto name = [&](StringRef suffix) { return layerName(index, "linear_attn." + suffix.str()); };
  auto flag = [&](bool set) { return set ? graph.ops().getUnitAttr() : UnitAttr(); };
  Value qkv = graph.linear(x, name("in_proj_qkv"));
  Value z = graph.linear(x, name("in_proj_z"));
  Value a = graph.linear(x, name("in_proj_a"));
  Value b = graph.linear(x, name("in_proj_b"));
  Value u = graph.create<cmf::CausalConvOp>(qkv.getType(), qkv, graph.weight(name("conv1d.weight")), graph.nextState(),
                                            graph.ops().getUnitAttr());
  Value y = graph.create<cmf::GatedDeltaOp>(
      graph.activations(sizes.valueHeads * sizes.valueDim), u, z, a, b, graph.weight(name("A_log")),
      graph.weight(name("dt_bias")), graph.weight(name("norm.weight")), graph.nextState(), graph.number(sizes.keyHeads),
      graph.number(sizes.valueHeads), graph.number(sizes.keyDim), graph.number(sizes.valueDim),
      graph.real(graph.model().eps), flag(sizes.tiledHeads), flag(sizes.decayRates), UnitAttr());
  return graph.linear(y, name("out_proj"));
}

} // namespace cortiq::compiler
