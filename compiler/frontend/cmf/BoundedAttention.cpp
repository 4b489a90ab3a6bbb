#include "compiler/frontend/cmf/BoundedAttention.h"

#include "compiler/frontend/cmf/Weights.h"
#include "formats/json.h"
#include "formats/quote.h"

#include <nlohmann/json.hpp>

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

namespace {

// Keys or values of the anchors, all in one vector.
Status addAnchors(const CmfFile& file, const std::string& name, std::vector<uint64_t> shape, ModelDescription& model) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file, name));
  if (tensor->shape != shape)
    return invalid("tensor " + formats::quote(name) + " has shape " + formats::shape_text(tensor->shape) +
                   ", but the model's sizes ask for " + formats::shape_text(shape));
  const formats::CodecId codec = tensor->codec ? tensor->codec->id : formats::CodecId();
  if (!tensor->codec ||
      (codec != formats::CodecId::kF32 && codec != formats::CodecId::kF16 && codec != formats::CodecId::kBF16))
    return unsupported("tensor " + formats::quote(name) + " is not of type f32, f16 or bf16, as anchors must be");
  model.weights[name] = {tensor, {static_cast<int64_t>(shape[0] * shape[1] * shape[2])}};
  return {};
}

} // namespace

// The reader has held the block against its rules already.
Status describeCmfBounds(const CmfFile& file, int64_t index, LayerDescription& layer, ModelDescription& model) {
  if (file.arch().layer_type(index) != formats::CmfLayerType::kBoundedAttention)
    return {};
  const formats::Json& core = file.header()["arch"]["anchor_core"];
  auto name = [&](std::string_view suffix) { return layerName(index, "self_attn." + std::string(suffix)); };
  for (const char* suffix :
       {"q_norm.weight", "k_norm.weight", "g_proj.weight", "q_proj.bias", "k_proj.bias", "v_proj.bias"})
    if (file.find(name(suffix)))
      return invalid("tensor " + formats::quote(name(suffix)) + " belongs to no layer of bounded attention");
  layer.window = core["window"].get<int64_t>();
  layer.ring = true;
  layer.rope = 0;
  if (const auto windows = core.find("group_windows"); windows != core.end() && !windows->is_null())
    layer.groupWindows = windows->get<std::vector<int64_t>>();
  const uint64_t anchors = core["sink"].get<uint64_t>();
  if (anchors == 0)
    return {};
  const auto heads = static_cast<uint64_t>(layer.kvHeads);
  CORTIQ_RETURN_IF_ERROR(
      addAnchors(file, name("sink_k.weight"), {heads, anchors, static_cast<uint64_t>(layer.headDim)}, model));
  return addAnchors(file, name("sink_v.weight"), {heads, anchors, static_cast<uint64_t>(layer.vDim)}, model);
}

} // namespace cortiq::compiler
