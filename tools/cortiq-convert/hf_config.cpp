#include "tools/cortiq-convert/hf_config.h"

#include <algorithm>
#include <cmath>

#include "formats/quote.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;

bool HfSizes::windows() const {
  return std::find(kinds.begin(), kinds.end(), LayerKind::kWindow) != kinds.end();
}

namespace {

constexpr uint64_t kMostLayers = 65536;
constexpr uint64_t kMostHeadDim = 65536; // tables of rotations are made before any tensor has shown that it is true

class ConfigReader {
public:
  ConfigReader(const Json& config, const Json& whole) : fields_(config), whole_(whole) {}

  StatusOr<HfHeader> read() {
    CORTIQ_RETURN_IF_ERROR(read_type());
    CORTIQ_RETURN_IF_ERROR(read_sizes());
    CORTIQ_RETURN_IF_ERROR(read_activation());
    CORTIQ_RETURN_IF_ERROR(read_scales());
    CORTIQ_RETURN_IF_ERROR(read_hf_mixers(fields_, out_));
    CORTIQ_RETURN_IF_ERROR(read_hf_experts(fields_, out_));
    CORTIQ_RETURN_IF_ERROR(read_hf_rope(fields_, out_));
    return std::move(out_);
  }

private:
  Status read_type() {
    CORTIQ_ASSIGN_OR_RETURN(const std::string name, fields_.text("model_type", ""));
    if (name.empty())
      return invalid("model_type is missing");
    out_.type = find_hf_arch(name);
    if (!out_.type)
      return unsupported("model_type " + quote(name) + " cannot be converted; known are " + hf_arch_names());
    if (fields_.has("quantization_config") || whole_.has("quantization_config"))
      return unsupported("the checkpoint is quantized already (quantization_config); take the unquantized one");
    out_.arch = Json::object();
    out_.arch["arch_name"] = out_.type->name;
    return {};
  }

  /// LFM2 may derive the width of its feed-forward blocks from the one that it states.
  StatusOr<uint64_t> feed_forward() const {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t stated, fields_.size("intermediate_size"));
    CORTIQ_ASSIGN_OR_RETURN(const bool adjusted, fields_.flag("block_auto_adjust_ff_dim", false));
    if (!adjusted || out_.type->mixer != HfMixer::kShortConv || out_.type->experts != HfExperts::kNone)
      return stated;
    CORTIQ_ASSIGN_OR_RETURN(const double factor, fields_.number("block_ffn_dim_multiplier", 1));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t multiple, fields_.size("block_multiple_of", 256));
    const double scaled = std::floor(factor * std::floor(2.0 * static_cast<double>(stated) / 3));
    if (!(scaled >= 1) || scaled > static_cast<double>(kMostSize) / 2 || multiple > kMostSize / 2)
      return invalid("block_ffn_dim_multiplier or block_multiple_of makes no size that a model can have");
    return (static_cast<uint64_t>(scaled) + multiple - 1) / multiple * multiple;
  }

  Status read_sizes() {
    HfSizes& s = out_.sizes;
    const HfArch& type = *out_.type;
    CORTIQ_ASSIGN_OR_RETURN(s.hidden, fields_.size("hidden_size"));
    CORTIQ_ASSIGN_OR_RETURN(s.feed_forward, feed_forward());
    CORTIQ_ASSIGN_OR_RETURN(s.layers, fields_.size("num_hidden_layers"));
    CORTIQ_ASSIGN_OR_RETURN(s.predictors, fields_.count("num_nextn_predict_layers", 0));
    CORTIQ_ASSIGN_OR_RETURN(s.heads, fields_.size("num_attention_heads"));
    CORTIQ_ASSIGN_OR_RETURN(s.kv_heads, fields_.size("num_key_value_heads", s.heads));
    CORTIQ_ASSIGN_OR_RETURN(s.head_dim,
                            fields_.size("head_dim", type.head_dim != 0 ? type.head_dim : s.hidden / s.heads));
    CORTIQ_ASSIGN_OR_RETURN(s.vocab, fields_.size("vocab_size"));
    CORTIQ_ASSIGN_OR_RETURN(const bool tied, whole_.flag("tie_word_embeddings", type.tied));
    CORTIQ_ASSIGN_OR_RETURN(s.tied, fields_.flag("tie_word_embeddings", tied));
    CORTIQ_ASSIGN_OR_RETURN(s.context, fields_.size("max_position_embeddings"));
    const std::string eps_name(type.eps);
    CORTIQ_ASSIGN_OR_RETURN(const double eps, fields_.number(eps_name.c_str(), 1e-6));
    if (s.layers > kMostLayers || s.heads % s.kv_heads != 0 || s.head_dim == 0 || s.head_dim % 2 != 0 ||
        s.head_dim > kMostHeadDim || eps < 0)
      return invalid("num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim or " + eps_name +
                     " cannot be those of a model");
    Json& arch = out_.arch;
    arch["hidden_size"] = s.hidden;
    arch["intermediate_size"] = s.feed_forward;
    arch["num_layers"] = s.layers;
    arch["num_attention_heads"] = s.heads;
    arch["num_kv_heads"] = s.kv_heads;
    arch["head_dim"] = s.head_dim;
    arch["vocab_size"] = s.vocab;
    arch["tie_word_embeddings"] = s.tied;
    arch["max_position_embeddings"] = s.context;
    arch["rms_norm_eps"] = eps;
    arch["norm_style"] = type.offset_norms ? "gemma" : "qwen";
    if (type.norm_after_rope)
      arch["qk_norm_after_rope"] = true;
    return {};
  }

  Status read_activation() {
    CORTIQ_ASSIGN_OR_RETURN(const std::string older, fields_.text("hidden_act", std::string(out_.type->act)));
    CORTIQ_ASSIGN_OR_RETURN(const std::string name, fields_.text("hidden_activation", older));
    // Gemma's first configurations say gelu and mean its approximation.
    const bool gemma = out_.type->act != "silu";
    if (name == "gelu_pytorch_tanh" || (gemma && name == "gelu"))
      out_.arch["hidden_act"] = "gelu_tanh";
    else if (name == "silu" || name == "gelu")
      out_.arch["hidden_act"] = name;
    else
      return unsupported("hidden_act is " + quote(name) + "; silu, gelu and gelu_pytorch_tanh can be converted");
    return {};
  }

  Status read_scales() {
    Json& arch = out_.arch;
    CORTIQ_ASSIGN_OR_RETURN(const double embedding, fields_.number("embedding_multiplier", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double attention, fields_.number("attention_multiplier", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double logits, fields_.number("logits_scaling", 1));
    CORTIQ_ASSIGN_OR_RETURN(out_.sizes.residual_scale, fields_.number("residual_multiplier", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double scalar, fields_.number("query_pre_attn_scalar", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double attention_cap, fields_.number("attn_logit_softcapping", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double final_cap, fields_.number("final_logit_softcapping", 0));
    if (logits == 0 || attention < 0 || scalar < 0 || attention_cap < 0 || final_cap < 0)
      return invalid("logits_scaling, attention_multiplier, query_pre_attn_scalar or a soft cap makes no sense");
    if (out_.type->scaled_embedding)
      arch["embed_multiplier"] = std::sqrt(static_cast<double>(out_.sizes.hidden));
    else if (embedding != 1)
      arch["embed_multiplier"] = embedding;
    if (attention != 0)
      arch["query_pre_attn_scalar"] = 1 / (attention * attention);
    if (scalar != 0)
      arch["query_pre_attn_scalar"] = scalar;
    if (logits != 1)
      arch["logit_multiplier"] = 1 / logits;
    if (attention_cap != 0)
      arch["attn_logit_softcapping"] = attention_cap;
    if (final_cap != 0)
      arch["final_logit_softcapping"] = final_cap;
    return {};
  }

  HfFields fields_;
  HfFields whole_;
  HfHeader out_;
};

} // namespace

StatusOr<HfHeader> read_hf_config(const Json& config) {
  if (!config.is_object())
    return invalid("it is no JSON object");
  const Json* text = HfFields(config).find("text_config");
  return ConfigReader(text && text->is_object() ? *text : config, config).read();
}

} // namespace cortiq::convert
