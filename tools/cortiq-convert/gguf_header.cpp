#include "tools/cortiq-convert/gguf_header.h"

#include <algorithm>
#include <cmath>

#include "formats/tensor.h"

namespace cortiq::convert {

using formats::GgufFile;
using formats::Tensor;

namespace {

class HeaderReader {
public:
  HeaderReader(const GgufFile& file, const GgufArch& arch) : file_(file), arch_(arch), keys_(file, arch.name) {}

  StatusOr<GgufHeader> read() {
    CORTIQ_RETURN_IF_ERROR(refuse_others());
    CORTIQ_RETURN_IF_ERROR(read_sizes());
    CORTIQ_RETURN_IF_ERROR(read_heads());
    CORTIQ_RETURN_IF_ERROR(read_numbers());
    CORTIQ_RETURN_IF_ERROR(read_scales());
    CORTIQ_RETURN_IF_ERROR(read_gguf_experts(keys_, arch_, out_));
    CORTIQ_RETURN_IF_ERROR(read_gguf_mixers(keys_, arch_, out_));
    CORTIQ_RETURN_IF_ERROR(read_gguf_rope(keys_, arch_, out_));
    return std::move(out_);
  }

private:
  /// What CMF has no field for, in any architecture.
  Status refuse_others() const {
    for (const char* suffix : {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.temperature_scale"}) {
      CORTIQ_ASSIGN_OR_RETURN(const double value, keys_.number(suffix, 0));
      if (value != 0)
        return keys_.refuse(suffix, std::to_string(value), "which CMF has no field for");
    }
    CORTIQ_ASSIGN_OR_RETURN(const bool causal, file_.get_bool_or(keys_.name("attention.causal"), true));
    if (!causal)
      return keys_.refuse("attention.causal", "false", "so this is an encoder");
    return {};
  }

  Status read_sizes() {
    GgufSizes& s = out_.sizes;
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t blocks, keys_.size("block_count"));
    if (blocks > file_.tensors().size())
      return invalid("key " + keys_.name("block_count") + " is " + std::to_string(blocks) + ", but the file has only " +
                     std::to_string(file_.tensors().size()) + " tensors");
    CORTIQ_ASSIGN_OR_RETURN(s.predictors, keys_.count_or("nextn_predict_layers", 0));
    if (s.predictors >= blocks)
      return invalid("key " + keys_.name("nextn_predict_layers") + " is " + std::to_string(s.predictors) + " of " +
                     std::to_string(blocks) + " blocks, which leaves no model");
    s.layers = blocks - s.predictors;
    if (s.predictors > 0)
      out_.warnings.push_back("the last " + std::to_string(s.predictors) +
                              " blocks only predict further tokens and are left out");
    CORTIQ_ASSIGN_OR_RETURN(s.hidden, keys_.size("embedding_length"));
    s.feed_forward.assign(s.layers, 0);
    if (keys_.has("feed_forward_length")) {
      CORTIQ_ASSIGN_OR_RETURN(s.feed_forward, keys_.counts("feed_forward_length", s.layers));
    }
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t context, keys_.size("context_length"));
    const Tensor* embedding = file_.find("token_embd.weight");
    if (!embedding || embedding->shape.size() != 2)
      return invalid("tensor 'token_embd.weight' is missing or no matrix");
    CORTIQ_ASSIGN_OR_RETURN(s.vocab, keys_.checked("vocab_size", embedding->shape[0]));
    CORTIQ_RETURN_IF_ERROR(check_tokens());
    formats::Json& json = out_.arch;
    json["arch_name"] = arch_.cmf_name;
    json["hidden_size"] = s.hidden;
    json["intermediate_size"] = *std::max_element(s.feed_forward.begin(), s.feed_forward.end());
    json["num_layers"] = s.layers;
    json["vocab_size"] = s.vocab;
    json["max_position_embeddings"] = context;
    // GGUF stores Gemma's and Qwen3-Next's norm weights with the 1 added, so that no style adds another.
    json["norm_style"] = "qwen";
    json["hidden_act"] = arch_.act;
    json["tie_word_embeddings"] = file_.find("output.weight") == nullptr;
    if (arch_.norm_after_rope)
      json["qk_norm_after_rope"] = true;
    return {};
  }

  /// The tokenizer's list has one entry for each row of the embedding.
  Status check_tokens() const {
    const uint64_t vocab = out_.sizes.vocab;
    const formats::GgufEntry* tokens = file_.entry("tokenizer.ggml.tokens");
    const auto* list = tokens ? std::get_if<formats::GgufArray>(&tokens->value) : nullptr;
    if (!list || list->size == vocab)
      return {};
    return invalid("tensor 'token_embd.weight' has " + std::to_string(vocab) + " rows, but tokenizer.ggml.tokens has " +
                   std::to_string(list->size) + " entries");
  }

  Status read_heads() {
    GgufSizes& s = out_.sizes;
    CORTIQ_ASSIGN_OR_RETURN(s.heads, keys_.counts("attention.head_count", s.layers));
    s.kv_heads = s.heads;
    if (keys_.has("attention.head_count_kv")) {
      CORTIQ_ASSIGN_OR_RETURN(s.kv_heads, keys_.counts("attention.head_count_kv", s.layers));
    }
    if (arch_.mixer == GgufMixer::kLatent)
      s.kv_heads = s.heads; // the key describes the absorbed form
    for (uint64_t i = 0; i < s.layers; ++i) {
      CORTIQ_RETURN_IF_ERROR(keys_.checked("attention.head_count", s.heads[i]).status());
      if (s.kv_heads[i] == 0 && arch_.mixer == GgufMixer::kShortConv)
        continue;
      CORTIQ_RETURN_IF_ERROR(keys_.checked("attention.head_count_kv", s.kv_heads[i]).status());
      if (s.heads[i] % s.kv_heads[i] != 0)
        return invalid("key " + keys_.name("attention.head_count") + " is " + std::to_string(s.heads[i]) +
                       ", not a multiple of " + keys_.name("attention.head_count_kv") + ", which is " +
                       std::to_string(s.kv_heads[i]) + " (layer " + std::to_string(i) + ")");
    }
    const uint64_t plain = s.hidden / s.heads[0];
    CORTIQ_ASSIGN_OR_RETURN(s.key_length, keys_.size_or("attention.key_length", plain));
    CORTIQ_ASSIGN_OR_RETURN(s.value_length, keys_.size_or("attention.value_length", plain));
    for (const char* suffix : {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"})
      if (keys_.has(suffix))
        return keys_.refuse(suffix, "given", "and heads of another size in window layers cannot be converted");
    if (s.key_length % 2 != 0)
      return invalid("the head size is " + std::to_string(s.key_length) + ", an odd number");
    formats::Json& json = out_.arch;
    const uint64_t kv_heads = *std::max_element(s.kv_heads.begin(), s.kv_heads.end());
    if (kv_heads == 0)
      return invalid("key " + keys_.name("attention.head_count_kv") + " is 0 for every layer");
    json["num_attention_heads"] = s.heads[0];
    json["num_kv_heads"] = kv_heads;
    json["head_dim"] = s.key_length;
    if (arch_.mixer == GgufMixer::kLatent)
      return {};
    if (s.value_length > s.key_length)
      return keys_.refuse("attention.value_length", std::to_string(s.value_length),
                          "more than " + keys_.name("attention.key_length") + ", which CMF has no field for");
    if (s.value_length != s.key_length)
      json["v_head_dim"] = s.value_length;
    write_varying(json, "attention_heads_per_layer", s.heads);
    std::vector<uint64_t> filled = s.kv_heads; // layers without attention get any count that passes the checks
    std::replace(filled.begin(), filled.end(), uint64_t{0}, kv_heads);
    write_varying(json, "kv_heads_per_layer", filled);
    return {};
  }

  static void write_varying(formats::Json& json, const char* name, const std::vector<uint64_t>& list) {
    if (std::any_of(list.begin(), list.end(), [&](uint64_t n) { return n != list[0]; }))
      json[name] = list;
  }

  Status read_numbers() {
    CORTIQ_ASSIGN_OR_RETURN(const double eps, file_.get_f64(keys_.name("attention.layer_norm_rms_epsilon")));
    CORTIQ_ASSIGN_OR_RETURN(const double scale, keys_.number("attention.scale", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double attention_cap, keys_.number("attn_logit_softcapping", arch_.attention_cap));
    CORTIQ_ASSIGN_OR_RETURN(const double final_cap, keys_.number("final_logit_softcapping", arch_.final_cap));
    if (!std::isfinite(eps) || eps < 0 || scale < 0 || attention_cap < 0 || final_cap < 0)
      return invalid("one of " + keys_.name("attention.layer_norm_rms_epsilon") + ", " + keys_.name("attention.scale") +
                     ", " + keys_.name("attn_logit_softcapping") + " and " + keys_.name("final_logit_softcapping") +
                     " is negative or no number");
    const GgufSizes& s = out_.sizes;
    formats::Json& json = out_.arch;
    json["rms_norm_eps"] = eps;
    if (scale != 0)
      json["query_pre_attn_scalar"] = 1 / (scale * scale);
    else if (arch_.odd_scale_layers != 0 && s.layers == arch_.odd_scale_layers)
      json["query_pre_attn_scalar"] = static_cast<double>(s.hidden) / static_cast<double>(s.heads[0]);
    if (attention_cap != 0)
      json["attn_logit_softcapping"] = attention_cap;
    if (final_cap != 0)
      json["final_logit_softcapping"] = final_cap;
    return {};
  }

  Status read_scales() {
    CORTIQ_ASSIGN_OR_RETURN(const double embedding, keys_.number("embedding_scale", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double residual, keys_.number("residual_scale", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double logits, keys_.number("logit_scale", 0));
    if (arch_.scaled_embedding)
      out_.arch["embed_multiplier"] = std::sqrt(static_cast<double>(out_.sizes.hidden));
    else if (embedding != 1 && embedding != 0)
      out_.arch["embed_multiplier"] = embedding;
    if (residual != 0)
      out_.sizes.residual_scale = residual;
    if (logits != 0 && !arch_.divides_logits)
      return keys_.refuse("logit_scale", std::to_string(logits), "which has no meaning in this architecture");
    if (logits != 0)
      out_.arch["logit_multiplier"] = 1 / logits;
    return {};
  }

  const GgufFile& file_;
  const GgufArch& arch_;
  GgufKeys keys_;
  GgufHeader out_;
};

} // namespace

StatusOr<GgufHeader> read_gguf_header(const GgufFile& file, const GgufArch& arch) {
  return HeaderReader(file, arch).read();
}

} // namespace cortiq::convert
