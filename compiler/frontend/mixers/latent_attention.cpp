// Multi-head latent attention (CMF specification 3.6). Every head is [rope | nope], so that rotation turns its start.
//
// Two forms, by the weights that are there. With kv_b_proj.k and kv_b_proj.v the keys and values of all heads are
// expanded from the latent vector. With one matrix a head (k_b_proj.N, v_b_proj.N) queries are brought into the latent
// space instead, where all heads share one key and one value, the latent vector itself; the result is brought back.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

Value headMatmul(GraphBuilder& graph, Value x, const std::string& stem, int64_t heads) {
  SmallVector<Value> weights;
  for (int64_t h = 0; h < heads; ++h)
    weights.push_back(graph.weight(stem + "." + std::to_string(h) + ".weight"));
  return graph.create<cmf::HeadMatmulOp>(x, weights);
}

Value rotate(GraphBuilder& graph, Value x, int64_t head, const LayerDescription& layer) {
  cmf::RopeAttr rope = graph.rope(layer.rope);
  return rope ? graph.create<cmf::RopeOp>(x, graph.number(head), rope) : x;
}

} // namespace

Value buildLatentAttention(GraphBuilder& graph, int64_t index, const LayerDescription& layer, Value x) {
  const ModelDescription& model = graph.model();
  const LatentAttention& sizes = model.latent;
  auto name = [&](StringRef suffix) { return layerName(index, "self_attn." + suffix.str()); };
  const bool absorbed = model.find(name("k_b_proj.0.weight")) != nullptr;
  const int64_t kvHeads = absorbed ? 1 : layer.heads;
  const int64_t keySize = sizes.rope + (absorbed ? sizes.rank : sizes.nope);
  const int64_t valueSize = absorbed ? sizes.rank : sizes.value;

  std::string query = name("q_proj");
  Value low = x;
  if (model.find(name("q_a_proj.weight"))) {
    low = graph.plainNorm(graph.linear(x, name("q_a_proj")), name("q_a_layernorm"));
    query = name("q_b_proj");
  }
  Value q;
  if (model.find(query + ".weight")) {
    q = graph.linear(low, query);
  } else {
    Value turning = graph.linear(low, query + ".rope"), still = graph.linear(low, query + ".nope");
    if (absorbed)
      still = headMatmul(graph, still, name("k_b_proj"), layer.heads);
    q = graph.create<cmf::ConcatHeadsOp>(turning, still, layer.heads, /*shared=*/false);
  }

  Value latent = graph.plainNorm(graph.linear(x, name("kv_a_proj_with_mqa.latent")), name("kv_a_layernorm"));
  Value sharedKey = graph.linear(x, name("kv_a_proj_with_mqa.rope"));
  Value keys = absorbed ? latent : graph.linear(latent, name("kv_b_proj.k"));
  Value values = absorbed ? latent : graph.linear(latent, name("kv_b_proj.v"));
  Value k = graph.create<cmf::ConcatHeadsOp>(sharedKey, keys, kvHeads, /*shared=*/kvHeads != 1);

  Value mixed = graph.create<cmf::AttentionOp>(
      graph.activations(layer.heads * valueSize), rotate(graph, q, keySize, layer), rotate(graph, k, keySize, layer),
      values, Value(), Value(), Value(), Value(), graph.number(layer.cache), graph.number(layer.heads),
      graph.number(kvHeads), graph.number(keySize), graph.number(valueSize), graph.real(model.attentionScale),
      IntegerAttr(), FloatAttr(), FloatAttr(), FloatAttr(), DenseI64ArrayAttr(), UnitAttr());
  if (absorbed)
    mixed = headMatmul(graph, mixed, name("v_b_proj"), layer.heads);
  return graph.linear(mixed, name("o_proj"));
}

} // namespace cortiq::compiler
