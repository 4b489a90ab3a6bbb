#include "tools/cortiq-convert/hf_source.h"

#include <nlohmann/json.hpp>
#include <set>

#include "formats/quote.h"
#include "tools/cortiq-convert/hf_config.h"
#include "tools/cortiq-convert/hf_text.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;
using formats::Tensor;

namespace {

class HfConverter {
public:
  HfConverter(const formats::SafetensorsFolder& weights, const HfHeader& header) : weights_(weights), header_(header) {}

  Status add_tensors() {
    const HfSizes& s = header_.sizes;
    CORTIQ_RETURN_IF_ERROR(add("model.embed_tokens.weight", {s.vocab, s.hidden}));
    for (uint64_t layer = 0; layer < s.layers; ++layer)
      CORTIQ_RETURN_IF_ERROR(add_layer(layer));
    CORTIQ_RETURN_IF_ERROR(add("model.norm.weight", {s.hidden}));
    if (!s.tied)
      CORTIQ_RETURN_IF_ERROR(add("lm_head.weight", {s.vocab, s.hidden}));
    return check_all_used();
  }

  std::vector<SourceTensor> take_tensors() { return std::move(tensors_); }

private:
  Status add_layer(uint64_t layer) {
    const HfSizes& s = header_.sizes;
    const uint64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    struct Part {
      const char* suffix;
      std::vector<uint64_t> shape;
    };
    std::vector<Part> parts = {
        {"self_attn.q_proj.weight", {q, s.hidden}},
        {"self_attn.k_proj.weight", {kv, s.hidden}},
        {"self_attn.v_proj.weight", {kv, s.hidden}},
    };
    // CMF uses the three biases together or not at all.
    if (weights_.find(layer_name(layer, "self_attn.q_proj.bias")))
      parts.insert(parts.end(),
                   {{"self_attn.q_proj.bias", {q}}, {"self_attn.k_proj.bias", {kv}}, {"self_attn.v_proj.bias", {kv}}});
    parts.insert(parts.end(), {{"self_attn.o_proj.weight", {s.hidden, q}},
                               {"input_layernorm.weight", {s.hidden}},
                               {"post_attention_layernorm.weight", {s.hidden}},
                               {"mlp.gate_proj.weight", {s.feed_forward, s.hidden}},
                               {"mlp.up_proj.weight", {s.feed_forward, s.hidden}},
                               {"mlp.down_proj.weight", {s.hidden, s.feed_forward}}});
    if (header_.type->head_norms)
      parts.insert(parts.end(), {{"self_attn.q_norm.weight", {s.head_dim}}, {"self_attn.k_norm.weight", {s.head_dim}}});
    for (Part& part : parts)
      CORTIQ_RETURN_IF_ERROR(add(layer_name(layer, part.suffix), std::move(part.shape)));
    return {};
  }

  Status add(std::string name, std::vector<uint64_t> shape) {
    const Tensor* tensor = weights_.find(name);
    if (!tensor)
      return invalid("tensor " + quote(name) + " is missing");
    if (tensor->shape != shape)
      return invalid("tensor " + quote(name) + " has shape " + formats::shape_text(tensor->shape) + ", expected " +
                     formats::shape_text(shape));
    CORTIQ_RETURN_IF_ERROR(formats::weight_codec(*tensor).status());
    used_.insert(tensor);
    tensors_.push_back({std::move(name), std::move(shape), tensor, 0, 0});
    return {};
  }

  Status check_all_used() const {
    for (const Tensor& tensor : weights_.tensors()) {
      const std::string_view name = tensor.name;
      const bool computed = name.ends_with(".rotary_emb.inv_freq");     // old files store the table
      const bool tied = header_.sizes.tied && name == "lm_head.weight"; // a second copy of the embedding
      if (!used_.contains(&tensor) && !computed && !tied)
        return unsupported("tensor " + quote(name) + " has no place in a CMF file of model_type " +
                           quote(header_.type->name));
    }
    return {};
  }

  const formats::SafetensorsFolder& weights_;
  const HfHeader& header_;
  std::vector<SourceTensor> tensors_;
  std::set<const Tensor*> used_;
};

} // namespace

StatusOr<SourceModel> read_hf_model(const std::string& folder, const formats::SafetensorsFolder& weights) {
  CORTIQ_ASSIGN_OR_RETURN(const Json config, read_folder_json(folder, "config.json"));
  if (config.is_null())
    return invalid(quote(folder) + " has no config.json");
  SourceModel model;
  model.format = "safetensors";
  for (size_t i = 0; i < weights.file_count(); ++i)
    model.bytes += weights.file_bytes(i).size();
  StatusOr<HfHeader> header = read_hf_config(config);
  CORTIQ_RETURN_IF_ERROR(header.status().with_prefix(quote(folder + "/config.json")));
  model.arch = header->arch;
  HfConverter converter(weights, *header);
  CORTIQ_RETURN_IF_ERROR(converter.add_tensors().with_prefix(quote(folder)));
  model.tensors = converter.take_tensors();
  CORTIQ_RETURN_IF_ERROR(read_hf_text(folder, config, model));
  return model;
}

} // namespace cortiq::convert
