// Softmax attention: projections, norms and rotation of the heads, attention itself, the output projection.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

// Norm of each head, or of all together, and rotation, in the order that the model wants.
Value headChain(GraphBuilder& graph, Value x, const LayerDescription& layer, const std::string& normName) {
  if (!graph.model().qkNormAfterRope)
    x = graph.norm(x, normName, graph.model().qkNormWhole ? 0 : layer.headDim);
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
  Value still = graph.linear(x, name("q_proj"));
  Value q = headChain(graph, still, layer, name("q_norm"));
  Value k = headChain(graph, graph.linear(x, name("k_proj")), layer, name("k_norm"));
  Value v = graph.linear(x, name("v_proj"));
  if (model.valueNorm)
    v = graph.rmsNorm(v, Value(), layer.vDim);
  Value anchorKeys = graph.weight(name("sink_k.weight"));
  const QueryTemperature& temperature = model.queryTemperature;
  Value mixed = graph.create<cmf::AttentionOp>(
      graph.activations(layer.heads * layer.vDim), q, k, v, graph.weight(name("sinks")), anchorKeys ? still : Value(),
      anchorKeys, graph.weight(name("sink_v.weight")), graph.number(layer.cache), graph.number(layer.heads),
      graph.number(layer.kvHeads), graph.number(layer.headDim), graph.number(layer.vDim),
      graph.real(model.attentionScale), layer.window ? graph.number(*layer.window) : IntegerAttr(),
      model.attentionSoftcap != 0 ? graph.real(model.attentionSoftcap) : FloatAttr(),
      temperature.scale != 0 ? graph.real(temperature.length) : FloatAttr(),
      temperature.scale != 0 ? graph.real(temperature.scale) : FloatAttr(),
      layer.groupWindows.empty() ? DenseI64ArrayAttr() : graph.ops().getDenseI64ArrayAttr(layer.groupWindows),
      layer.ring ? graph.ops().getUnitAttr() : UnitAttr());
  auto gate = [&](const std::string& gateName, cmf::GateFunction function) {
    if (model.find(gateName + ".weight"))
      mixed = graph.create<cmf::GateOp>(mixed, graph.linear(x, gateName),
                                        cmf::GateFunctionAttr::get(graph.ops().getContext(), function));
  };
  gate(name("q_proj.gate"), cmf::GateFunction::sigmoid);
  gate(name("g_proj"), layer.gate);
  return graph.linear(mixed, name("o_proj"));
}

} // namespace cortiq::compiler
