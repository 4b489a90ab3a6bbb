#include "tools/cortiq-convert/hf_source.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "formats/quote.h"
#include "tools/cortiq-convert/hf_names.h"
#include "tools/cortiq-convert/hf_tensors.h"
#include "tools/cortiq-convert/hf_text.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;
using formats::Tensor;

namespace {

/// The tensors of a folder by their canonical names.
class NameTable {
public:
  Status fill(const formats::SafetensorsFolder& weights, const HfSizes& sizes) {
    for (const Tensor& tensor : weights.tensors()) {
      std::string name = canonical_name(tensor.name);
      if (name.empty())
        continue;
      if (predicts(name, sizes))
        ++predictors_;
      else if (!by_name_.try_emplace(name, &tensor).second)
        return invalid("two tensors mean " + quote(name) + ", one of them is " + quote(tensor.name));
    }
    return {};
  }

  const Tensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// Tensors of blocks that only predict further tokens.
  size_t predictors() const { return predictors_; }

private:
  static bool predicts(std::string_view name, const HfSizes& sizes) {
    if (name.starts_with("mtp.") || name.starts_with("model.mtp."))
      return true;
    for (uint64_t i = 0; i < sizes.predictors; ++i)
      if (name.starts_with(layer_name(sizes.layers + i, "")))
        return true;
    return false;
  }

  std::unordered_map<std::string, const Tensor*> by_name_;
  size_t predictors_ = 0;
};

Status add_mixer(HfTensors& tensors, uint64_t layer) {
  switch (tensors.sizes.kinds[layer]) {
  case LayerKind::kAttention:
  case LayerKind::kWindow:
    return tensors.type.mixer == HfMixer::kLatent ? add_hf_latent(tensors, layer) : add_hf_attention(tensors, layer);
  case LayerKind::kShortConv:
    return add_hf_short_conv(tensors, layer);
  case LayerKind::kGatedDelta:
    return add_hf_delta(tensors, layer);
  }
}

Status add_layer(HfTensors& tensors, uint64_t layer) {
  CORTIQ_RETURN_IF_ERROR(add_mixer(tensors, layer));
  std::vector<const char*> norms = {"input_layernorm.weight", "post_attention_layernorm.weight"};
  if (tensors.type.sandwich)
    norms.insert(norms.end(), {"pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"});
  for (const char* norm : norms)
    CORTIQ_RETURN_IF_ERROR(tensors.keep(layer_name(layer, norm), {tensors.sizes.hidden}).status());
  return add_hf_feed_forward(tensors, layer);
}

Status add_tensors(HfTensors& tensors) {
  const HfSizes& s = tensors.sizes;
  CORTIQ_RETURN_IF_ERROR(tensors.keep("model.embed_tokens.weight", {s.vocab, s.hidden}).status());
  for (uint64_t layer = 0; layer < s.layers; ++layer)
    CORTIQ_RETURN_IF_ERROR(add_layer(tensors, layer));
  CORTIQ_RETURN_IF_ERROR(tensors.keep("model.norm.weight", {s.hidden}).status());
  return s.tied ? Status() : tensors.keep("lm_head.weight", {s.vocab, s.hidden}).status();
}

/// Whatever is left would change what the model computes; CMF has no place for it.
Status check_all_used(const formats::SafetensorsFolder& weights, const NameTable& names, const HfTensors& tensors) {
  for (const Tensor& tensor : weights.tensors()) {
    const std::string name = canonical_name(tensor.name);
    const bool tied = tensors.sizes.tied && name == "lm_head.weight"; // a second copy of the embedding
    if (names.find(name) == &tensor && !tensors.used(tensor) && !tied)
      return unsupported("tensor " + quote(tensor.name) + " has no place in a CMF file of model_type " +
                         quote(tensors.type.name));
  }
  return {};
}

Status read_weights(const formats::SafetensorsFolder& weights, const HfHeader& header, SourceModel& model) {
  NameTable names;
  CORTIQ_RETURN_IF_ERROR(names.fill(weights, header.sizes));
  if (names.predictors() > 0)
    model.warnings.push_back(std::to_string(names.predictors()) +
                             " tensors that only predict further tokens are left out");
  HfTensors tensors([&](const std::string& name) { return names.find(name); }, header);
  CORTIQ_RETURN_IF_ERROR(add_tensors(tensors));
  CORTIQ_RETURN_IF_ERROR(check_all_used(weights, names, tensors));
  model.tensors = tensors.release();
  return {};
}

/// What the folder is called; empty where that is no text.
std::string folder_name(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  const std::string name = error ? std::string() : path.filename().string();
  return formats::is_utf8(name) ? name : std::string();
}

} // namespace

StatusOr<SourceModel> read_hf_model(const std::string& folder, const formats::SafetensorsFolder& weights) {
  CORTIQ_ASSIGN_OR_RETURN(const Json config, read_folder_json(folder, "config.json"));
  if (config.is_null())
    return invalid(quote(folder) + " has no config.json; give a GGUF file, or the folder of a checkpoint with "
                                   "config.json, tokenizer.json and *.safetensors");
  SourceModel model;
  model.format = "safetensors";
  model.name = folder_name(folder);
  for (size_t i = 0; i < weights.file_count(); ++i)
    model.bytes += weights.file_bytes(i).size();
  StatusOr<HfHeader> header = read_hf_config(config);
  CORTIQ_RETURN_IF_ERROR(header.status().with_prefix(quote(folder + "/config.json")));
  model.arch = header->arch;
  model.warnings = header->warnings;
  CORTIQ_RETURN_IF_ERROR(read_weights(weights, *header, model).with_prefix(quote(folder)));
  CORTIQ_RETURN_IF_ERROR(read_hf_text(folder, config, model));
  return model;
}

} // namespace cortiq::convert
