// Kimi delta attention (CMF specification 3.9): queries, keys and values each through a convolution of its own, and a
// decay for every channel of the keys.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildKda(GraphBuilder& graph, int64_t index, const LayerDescription&, Value x) {
  const LinearAttention& sizes = graph.model().linear;
  auto name = [&](StringRef suffix) { return layerName(index, "kda_attn." + suffix.str()); };
  auto convolved = [&](Value projected, StringRef part) -> Value {
    return graph.create<cmf::CausalConvOp>(projected.getType(), projected,
                                           graph.weight(name(part.str() + "_conv1d.weight")), graph.nextState(),
                                           graph.ops().getUnitAttr());
  };
  Value q = graph.linear(x, name("q_proj"));
  Value k = graph.linear(x, name("k_proj"));
  Value v = graph.linear(x, name("v_proj"));
  Value b = graph.linear(x, name("b_proj"));
  Value f = graph.linear(graph.linear(x, name("f_a_proj")), name("f_b_proj"));
  Value gate = graph.model().find(name("g_proj.weight"))
                   ? graph.linear(x, name("g_proj"))
                   : graph.linear(graph.linear(x, name("g_a_proj")), name("g_b_proj"));
  Value y = graph.create<cmf::KdaOp>(
      graph.activations(sizes.valueHeads * sizes.valueDim), convolved(q, "q"), convolved(k, "k"), convolved(v, "v"), f,
      b, gate, graph.weight(name("A_log")), graph.weight(name("dt_bias")), graph.weight(name("o_norm.weight")),
      graph.nextState(), graph.number(sizes.valueHeads), graph.number(sizes.keyDim), graph.number(sizes.valueDim),
      graph.real(graph.model().eps), sizes.decayBound ? graph.real(*sizes.decayBound) : FloatAttr());
  return graph.linear(y, name("o_proj"));
}

} // namespace cortiq::compiler
