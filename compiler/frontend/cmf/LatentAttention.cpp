#include "compiler/frontend/cmf/LatentAttention.h"

#include <cmath>

#include "compiler/frontend/RopeTables.h"
#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

namespace {

// Adds rows of a tensor as a weight; the file's tensor has `fileRows` rows.
Status addRows(ModelDescription& model, const CmfFile& file, const std::string& tensor, const std::string& name,
               WeightRef weight, int64_t fileRows) {
  CORTIQ_ASSIGN_OR_RETURN(weight.tensor, requireCmfTensor(file, tensor));
  return addWeight(model, name, weight, fileRows);
}

} // namespace

Status describeCmfLatentSizes(const CmfFile& file, ModelDescription& model) {
  const formats::CmfArch& arch = file.arch();
  const formats::CmfMla& mla = *arch.mla;
  struct Size {
    const char* name;
    uint32_t value;
  };
  for (const Size& size : {Size{"kv_lora_rank", mla.kv_lora_rank}, Size{"qk_rope_head_dim", mla.qk_rope_head_dim},
                           Size{"qk_nope_head_dim", mla.qk_nope_head_dim}, Size{"v_head_dim", mla.v_head_dim}})
    if (size.value == 0 || size.value > kMaxModelSize)
      return invalid(std::string("arch.mla.") + size.name + " is " + std::to_string(size.value) +
                     ", which no model can have");
  if (mla.qk_rope_head_dim % 2 != 0)
    return invalid("arch.mla.qk_rope_head_dim is " + std::to_string(mla.qk_rope_head_dim) + ", an odd number");
  model.latent = {mla.qk_rope_head_dim, mla.qk_nope_head_dim, mla.v_head_dim, mla.kv_lora_rank};
  model.attentionScale = 1 / std::sqrt(static_cast<double>(model.latent.rope + model.latent.nope));
  double magnitude = 1;
  if (arch.yarn) {
    magnitude = arch.yarn->attention_factor;
    const double all = arch.yarn->mscale_all_dim.value_or(0);
    if (all > 0) {
      const double factor = 0.1 * all * std::log(arch.yarn->factor) + 1;
      model.attentionScale *= factor * factor;
    }
  }
  if (!std::isfinite(model.attentionScale) || model.attentionScale <= 0)
    return invalid("arch.yarn.mscale_all_dim makes the attention's scale " + std::to_string(model.attentionScale));
  if (mla.nope) {
    model.ropes.push_back({});
    return {};
  }
  // YaRN scales the scores, not these frequencies (specification 3.3).
  return addRope(model, plainFrequencies(arch.rope_theta, model.latent.rope), magnitude);
}

bool hasCmfLatentAttention(const CmfFile& file, int64_t index) {
  return file.arch().mla.has_value() && file.find(layerName(index, "self_attn.kv_b_proj.weight"));
}

Status describeCmfLatentAttention(const CmfFile& file, int64_t index, LayerDescription& layer,
                                  ModelDescription& model) {
  const LatentAttention& sizes = model.latent;
  const int64_t head = sizes.rope + sizes.nope, hidden = model.hidden;
  auto name = [&](std::string_view suffix) { return layerName(index, "self_attn." + std::string(suffix)); };
  std::string query = name("q_proj.weight");
  int64_t width = hidden;
  if (file.arch().mla->q_lora_rank) {
    width = *file.arch().mla->q_lora_rank;
    if (width == 0 || width > kMaxModelSize)
      return invalid("arch.mla.q_lora_rank is " + std::to_string(width) + ", which no model can have");
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, name("q_a_proj.weight"), {width, hidden}));
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, name("q_a_layernorm.weight"), {width}));
    query = name("q_b_proj.weight");
  }
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* q, requireCmfTensor(file, query));
  layer.heads = static_cast<int64_t>(std::min<uint64_t>(q->rows(), kMaxModelSize)) / head;
  if (layer.heads == 0)
    return invalid("tensor " + formats::quote(query) + " has shape " + formats::shape_text(q->shape) +
                   ", less than one head of " + std::to_string(head));
  const int64_t heads = layer.heads, period = sizes.nope + sizes.value, rows = sizes.rank + sizes.rope;
  layer.mixer = Mixer::kLatentAttention;
  layer.kvHeads = heads;
  layer.headDim = head;
  layer.vDim = sizes.value;
  layer.rope = model.ropes.size() - 1;
  layer.window.reset();
  CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, query, {heads * head, width}));

  const std::string down = name("kv_a_proj_with_mqa"), up = name("kv_b_proj");
  CORTIQ_RETURN_IF_ERROR(
      addRows(model, file, down + ".weight", down + ".latent.weight", {nullptr, {sizes.rank, hidden}}, rows));
  CORTIQ_RETURN_IF_ERROR(
      addRows(model, file, down + ".weight", down + ".rope.weight", {nullptr, {sizes.rope, hidden}, sizes.rank}, rows));
  CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, name("kv_a_layernorm.weight"), {sizes.rank}));
  CORTIQ_RETURN_IF_ERROR(addRows(model, file, up + ".weight", up + ".k.weight",
                                 {nullptr, {heads * sizes.nope, sizes.rank}, 0, 0, sizes.nope, period},
                                 heads * period));
  CORTIQ_RETURN_IF_ERROR(addRows(model, file, up + ".weight", up + ".v.weight",
                                 {nullptr, {heads * sizes.value, sizes.rank}, sizes.nope, 0, sizes.value, period},
                                 heads * period));
  return addCmfWeight(file, model, name("o_proj.weight"), {hidden, heads * sizes.value});
}

} // namespace cortiq::compiler
