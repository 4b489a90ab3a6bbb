// Softmax attention: projections, norms and rotation of the heads, attention itself, the output projection.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

// Norm of each head and rotation, in the order that the model wants.
Value headChain(GraphBuilder& graph, Value x, const LayerDescription& layer, const std::string& normName) {
  if (!graph.model().qkNormAfterRope)
    x = graph.norm(x, normName, layer.headDim);
  if (cmf::RopeAttr rope = graph.rope(layer.rope))
    x = graph.create<cmf::RopeOp>(x, graph.number(layer.headDim), rope);
  if (graph.model().qkNormAfterRope)
    x = graph.norm(x, normName, layer.headDim);
  return x;
}

} // namespace

Value buildAttention(GraphBuilder& graph, int64_t index, const LayerDescription& layer, Value x) {
  const ModelDescription& model = graph.model();
  auto name = [&](StringRef suffix) { return layerName(index, "self_attn." + suffix.str()); };
  Value q = headChain(graph, graph.linear(x, name("q_proj")), layer, name("q_norm"));
  Value k = headChain(graph, graph.linear(x, name("k_proj")), layer, name("k_norm"));
  Value v = graph.linear(x, name("v_proj"));
  if (model.valueNorm)
    v = graph.rmsNorm(v, Value(), layer.vDim);
  Value mixed = graph.create<cmf::AttentionOp>(
      graph.activations(layer.heads * layer.vDim), q, k, v, graph.weight(name("sinks")), graph.number(index),
      graph.number(layer.heads), graph.number(layer.kvHeads), graph.number(layer.headDim), graph.number(layer.vDim),
      graph.real(model.attentionScale), layer.window ? graph.number(*layer.window) : IntegerAttr(),
      model.attentionSoftcap != 0 ? graph.real(model.attentionSoftcap) : FloatAttr());
  // A gate beside the queries.
  if (model.find(name("q_proj.gate.weight")))
    mixed = graph.create<cmf::GateOp>(mixed, graph.linear(x, name("q_proj.gate")),
                                      cmf::GateFunctionAttr::get(graph.ops().getContext(), cmf::GateFunction::sigmoid));
  return graph.linear(mixed, name("o_proj"));
}

} // namespace cortiq::compiler
