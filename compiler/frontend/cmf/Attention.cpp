#include "compiler/frontend/cmf/Attention.h"

#include <cmath>

#include "compiler/frontend/cmf/BoundedAttention.h"
#include "compiler/frontend/cmf/LatentAttention.h"
#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

namespace {

constexpr const char* kSinks[] = {"self_attn.sinks", "self_attn.attention_sink_bias", "self_attn.softmax_offset"};

Status describeGatedQueries(const CmfFile& file, const std::string& stem, const LayerDescription& layer, bool biased,
                            ModelDescription& model) {
  const int64_t rows = layer.heads * layer.headDim, period = 2 * layer.headDim;
  for (int64_t part : {0, 1}) {
    const std::string name = part == 0 ? stem : stem + ".gate";
    CORTIQ_RETURN_IF_ERROR(addWeight(
        model, name + ".weight",
        {file.find(stem + ".weight"), {rows, model.hidden}, part * layer.headDim, 0, layer.headDim, period}, 2 * rows));
    if (biased)
      CORTIQ_RETURN_IF_ERROR(
          addWeight(model, name + ".bias",
                    {file.find(stem + ".bias"), {rows}, part * layer.headDim, 0, layer.headDim, period}, 2 * rows));
  }
  return {};
}

// One gate a head, or one a channel.
Status describeProjectedGate(const CmfFile& file, const std::string& name, const LayerDescription& layer,
                             ModelDescription& model) {
  const Tensor* gate = file.find(name);
  if (!gate)
    return {};
  const bool channels = gate->shape.size() == 2 && gate->shape[0] != static_cast<uint64_t>(layer.heads);
  return addCmfWeight(file, model, name, {channels ? layer.heads * layer.headDim : layer.heads, model.hidden});
}

Status describeSinks(const CmfFile& file, int64_t i, int64_t heads, ModelDescription& model) {
  for (const char* suffix : kSinks) {
    const Tensor* tensor = file.find(layerName(i, suffix));
    if (!tensor)
      continue;
    CORTIQ_RETURN_IF_ERROR(addWeight(model, layerName(i, "self_attn.sinks"), {tensor, {heads}}));
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<float> values, formats::decode_tensor(*tensor));
    for (float value : values)
      if (!std::isfinite(value))
        return invalid("tensor " + formats::quote(tensor->name) + " has a value that is not finite");
    return {};
  }
  return {};
}

} // namespace

Status refuseCmfSinks(const CmfFile& file, int64_t i) {
  for (const char* suffix : kSinks)
    if (file.find(layerName(i, suffix)))
      return invalid("tensor " + formats::quote(layerName(i, suffix)) + " holds sinks, which a layer of type " +
                     std::string(formats::cmf_layer_type_name(file.arch().layer_type(i))) +
                     (hasCmfLatentAttention(file, i) ? " with latent attention" : "") + " does not have");
  return {};
}

Status describeCmfAttention(const CmfFile& file, int64_t i, LayerDescription& layer, ModelDescription& model) {
  if (i != kDraftBlock)
    CORTIQ_RETURN_IF_ERROR(describeCmfBounds(file, i, layer, model));
  auto name = [&](std::string_view suffix) { return layerName(i, "self_attn." + std::string(suffix)); };
  struct Part {
    std::string name;
    int64_t rows;
  };
  const Part parts[] = {{name("q_proj"), layer.heads * layer.headDim},
                        {name("k_proj"), layer.kvHeads * layer.headDim},
                        {name("v_proj"), layer.kvHeads * layer.vDim}};
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* q, requireCmfTensor(file, parts[0].name + ".weight"));
  // Each head's queries with as many gates behind them.
  const bool gatedQueries = q->shape.size() == 2 && q->shape[0] == 2 * static_cast<uint64_t>(parts[0].rows);
  if ((gatedQueries || file.find(name("g_proj.weight"))) && layer.vDim != layer.headDim)
    return invalid("layer " + std::to_string(i) + " has a gate, but values of " + std::to_string(layer.vDim) +
                   " features and keys of " + std::to_string(layer.headDim));
  if (gatedQueries && file.arch().global_head_dim)
    return invalid("tensor " + formats::quote(q->name) + " holds a gate beside its queries, which does not go " +
                   "together with arch.global_head_dim");
  // Biases are used only when all three exist (specification 3.1).
  bool biased = true;
  for (const Part& part : parts)
    biased = biased && file.find(part.name + ".bias");
  for (const Part& part : parts) {
    if (&part == parts && gatedQueries) {
      CORTIQ_RETURN_IF_ERROR(describeGatedQueries(file, part.name, layer, biased, model));
      continue;
    }
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, part.name + ".weight", {part.rows, model.hidden}));
    if (biased)
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, part.name + ".bias", {part.rows}));
  }
  CORTIQ_RETURN_IF_ERROR(describeProjectedGate(file, name("g_proj.weight"), layer, model));
  CORTIQ_RETURN_IF_ERROR(addOptionalCmfWeight(file, model, name("q_norm.weight"), {layer.headDim}));
  CORTIQ_RETURN_IF_ERROR(addOptionalCmfWeight(file, model, name("k_norm.weight"), {layer.headDim}));
  CORTIQ_RETURN_IF_ERROR(describeSinks(file, i, layer.heads, model));
  return addCmfWeight(file, model, name("o_proj.weight"), {model.hidden, layer.heads * layer.vDim});
}

} // namespace cortiq::compiler
