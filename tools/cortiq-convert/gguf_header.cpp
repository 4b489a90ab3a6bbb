#include "tools/cortiq-convert/gguf_header.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "formats/tensor.h"
#include "tools/cortiq-convert/rope_fields.h"

namespace cortiq::convert {

using formats::GgufFile;
using formats::Json;
using formats::quote;
using formats::Tensor;

namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 31; // what a CMF header holds

class HeaderReader {
public:
  HeaderReader(const GgufFile& file, const GgufArch& arch) : file_(file), arch_(arch) {}

  StatusOr<GgufHeader> read() {
    CORTIQ_RETURN_IF_ERROR(refuse_others());
    CORTIQ_RETURN_IF_ERROR(read_sizes());
    CORTIQ_RETURN_IF_ERROR(read_heads());
    CORTIQ_RETURN_IF_ERROR(read_numbers());
    CORTIQ_RETURN_IF_ERROR(read_rope());
    return GgufHeader{std::move(json_), std::move(sizes_)};
  }

private:
  std::string key(std::string_view suffix) const { return std::string(arch_.name) + "." + std::string(suffix); }

  StatusOr<uint64_t> size(std::string_view suffix) const {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64(key(suffix)));
    return checked(suffix, value);
  }

  StatusOr<uint64_t> size_or(std::string_view suffix, uint64_t otherwise) const {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64_or(key(suffix), otherwise));
    return checked(suffix, value);
  }

  StatusOr<uint64_t> checked(std::string_view suffix, uint64_t value) const {
    if (value == 0 || value > kMostSize)
      return invalid("key " + key(suffix) + " is " + std::to_string(value) + ", which no model can have");
    return value;
  }

  StatusOr<std::vector<uint64_t>> per_layer(std::string_view suffix) const {
    CORTIQ_ASSIGN_OR_RETURN(std::vector<uint64_t> values, file_.get_per_layer_u64(key(suffix), sizes_.layers));
    for (const uint64_t value : values)
      CORTIQ_RETURN_IF_ERROR(checked(suffix, value).status());
    return values;
  }

  StatusOr<double> number(std::string_view suffix, double otherwise) const {
    CORTIQ_ASSIGN_OR_RETURN(const double value, file_.get_f64_or(key(suffix), otherwise));
    if (!std::isfinite(value))
      return invalid("key " + key(suffix) + " is not a finite number");
    return value;
  }

  /// What the plain dense decoder is not.
  Status refuse_others() const {
    for (const char* suffix : {"expert_count", "nextn_predict_layers"}) {
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64_or(key(suffix), 0));
      if (value != 0)
        return unsupported("key " + key(suffix) + " is " + std::to_string(value) +
                           ", and models with experts or prediction blocks cannot be converted yet");
    }
    for (const char* suffix : {"attention.clamp_kqv", "attention.max_alibi_bias"}) {
      CORTIQ_ASSIGN_OR_RETURN(const double value, number(suffix, 0));
      if (value != 0)
        return unsupported("key " + key(suffix) + " is " + std::to_string(value) + ", which CMF has no field for");
    }
    CORTIQ_ASSIGN_OR_RETURN(const bool causal, file_.get_bool_or(key("attention.causal"), true));
    if (!causal)
      return unsupported("key " + key("attention.causal") + " is false: this is an encoder");
    return {};
  }

  Status read_sizes() {
    CORTIQ_ASSIGN_OR_RETURN(sizes_.layers, size("block_count"));
    if (sizes_.layers > file_.tensors().size())
      return invalid("key " + key("block_count") + " is " + std::to_string(sizes_.layers) + ", but the file has only " +
                     std::to_string(file_.tensors().size()) + " tensors");
    CORTIQ_ASSIGN_OR_RETURN(sizes_.hidden, size("embedding_length"));
    CORTIQ_ASSIGN_OR_RETURN(sizes_.feed_forward, per_layer("feed_forward_length"));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t context, size("context_length"));
    const Tensor* embedding = file_.find("token_embd.weight");
    if (!embedding || embedding->shape.size() != 2)
      return invalid("tensor 'token_embd.weight' is missing or no matrix");
    CORTIQ_ASSIGN_OR_RETURN(sizes_.vocab, checked("vocab_size", embedding->shape[0]));
    CORTIQ_RETURN_IF_ERROR(check_tokens());
    json_["arch_name"] = arch_.cmf_name;
    json_["hidden_size"] = sizes_.hidden;
    json_["intermediate_size"] = *std::max_element(sizes_.feed_forward.begin(), sizes_.feed_forward.end());
    json_["num_layers"] = sizes_.layers;
    json_["vocab_size"] = sizes_.vocab;
    json_["max_position_embeddings"] = context;
    json_["layer_types"] = std::vector<std::string>(sizes_.layers, "FullAttention");
    json_["norm_style"] = "qwen";
    json_["hidden_act"] = "silu";
    json_["tie_word_embeddings"] = file_.find("output.weight") == nullptr;
    return {};
  }

  /// The tokenizer's list has one entry for each row of the embedding.
  Status check_tokens() const {
    const formats::GgufEntry* tokens = file_.entry("tokenizer.ggml.tokens");
    const auto* list = tokens ? std::get_if<formats::GgufArray>(&tokens->value) : nullptr;
    if (!list || list->size == sizes_.vocab)
      return {};
    return invalid("tensor 'token_embd.weight' has " + std::to_string(sizes_.vocab) +
                   " rows, but tokenizer.ggml.tokens has " + std::to_string(list->size) + " entries");
  }

  Status read_heads() {
    CORTIQ_ASSIGN_OR_RETURN(sizes_.heads, per_layer("attention.head_count"));
    sizes_.kv_heads = sizes_.heads;
    if (file_.has(key("attention.head_count_kv"))) {
      CORTIQ_ASSIGN_OR_RETURN(sizes_.kv_heads, per_layer("attention.head_count_kv"));
    }
    for (uint64_t i = 0; i < sizes_.layers; ++i)
      if (sizes_.heads[i] % sizes_.kv_heads[i] != 0)
        return invalid("key " + key("attention.head_count") + " is " + std::to_string(sizes_.heads[i]) +
                       ", not a multiple of " + key("attention.head_count_kv") + ", which is " +
                       std::to_string(sizes_.kv_heads[i]) + " (layer " + std::to_string(i) + ")");
    const uint64_t plain = sizes_.hidden / sizes_.heads[0];
    CORTIQ_ASSIGN_OR_RETURN(sizes_.key_length, size_or("attention.key_length", plain));
    CORTIQ_ASSIGN_OR_RETURN(sizes_.value_length, size_or("attention.value_length", plain));
    if (sizes_.key_length % 2 != 0)
      return invalid("the head size is " + std::to_string(sizes_.key_length) + ", an odd number");
    if (sizes_.value_length > sizes_.key_length)
      return unsupported("key " + key("attention.value_length") + " is " + std::to_string(sizes_.value_length) +
                         ", more than " + key("attention.key_length") + ", which CMF has no field for");
    json_["num_attention_heads"] = sizes_.heads[0];
    json_["num_kv_heads"] = sizes_.kv_heads[0];
    json_["head_dim"] = sizes_.key_length;
    if (sizes_.value_length != sizes_.key_length)
      json_["v_head_dim"] = sizes_.value_length;
    const auto varies = [](const std::vector<uint64_t>& list) {
      return std::any_of(list.begin(), list.end(), [&](uint64_t n) { return n != list[0]; });
    };
    if (varies(sizes_.heads))
      json_["attention_heads_per_layer"] = sizes_.heads;
    if (varies(sizes_.kv_heads))
      json_["kv_heads_per_layer"] = sizes_.kv_heads;
    return {};
  }

  Status read_numbers() {
    CORTIQ_ASSIGN_OR_RETURN(const double eps, file_.get_f64(key("attention.layer_norm_rms_epsilon")));
    CORTIQ_ASSIGN_OR_RETURN(const double scale, number("attention.scale", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double attention_cap, number("attn_logit_softcapping", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double final_cap, number("final_logit_softcapping", 0));
    if (!std::isfinite(eps) || eps < 0 || scale < 0 || attention_cap < 0 || final_cap < 0)
      return invalid("one of " + key("attention.layer_norm_rms_epsilon") + ", " + key("attention.scale") + ", " +
                     key("attn_logit_softcapping") + " and " + key("final_logit_softcapping") + " is negative");
    json_["rms_norm_eps"] = eps;
    if (scale != 0)
      json_["query_pre_attn_scalar"] = 1 / (scale * scale);
    if (attention_cap != 0)
      json_["attn_logit_softcapping"] = attention_cap;
    if (final_cap != 0)
      json_["final_logit_softcapping"] = final_cap;
    return {};
  }

  Status read_rope() {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t dims, size_or("rope.dimension_count", sizes_.key_length));
    const bool whole = arch_.neighbours; // permuted rows are permuted over whole heads
    if (dims % 2 != 0 || dims > sizes_.key_length || (whole && dims != sizes_.key_length))
      return invalid("key " + key("rope.dimension_count") + " is " + std::to_string(dims) + ", but the head size is " +
                     std::to_string(sizes_.key_length));
    CORTIQ_ASSIGN_OR_RETURN(const double base, number("rope.freq_base", 10000));
    if (base <= 0)
      return invalid("key " + key("rope.freq_base") + " is " + std::to_string(base) + ", not a positive number");
    json_["rope_theta"] = base;
    json_["partial_rotary_factor"] = partial_factor(dims, sizes_.key_length);
    std::vector<double> factors;
    if (const Tensor* tensor = file_.find("rope_freqs.weight")) {
      CORTIQ_ASSIGN_OR_RETURN(const std::vector<float> values, formats::decode_tensor(*tensor));
      const auto bad = [](float f) { return !std::isfinite(f) || f == 0; };
      if (values.size() != dims / 2 || std::any_of(values.begin(), values.end(), bad))
        return invalid("tensor 'rope_freqs.weight' does not hold one finite factor, not zero, for each of the " +
                       std::to_string(dims / 2) + " rotated pairs");
      factors.assign(values.begin(), values.end());
    }
    CORTIQ_RETURN_IF_ERROR(read_scaling(dims, factors));
    if (!factors.empty())
      json_["rope_freq_factors"] = factors;
    return {};
  }

  Status read_scaling(uint64_t dims, std::vector<double>& factors) {
    const std::string name = key("rope.scaling.type");
    CORTIQ_ASSIGN_OR_RETURN(const std::string_view type, file_.get_string_or(name, "linear"));
    CORTIQ_ASSIGN_OR_RETURN(const double old_factor, number("rope.scale_linear", 0));
    CORTIQ_ASSIGN_OR_RETURN(double factor, number("rope.scaling.factor", old_factor));
    CORTIQ_ASSIGN_OR_RETURN(const double magnitude, number("rope.scaling.attn_factor", 1));
    if (factor == 0)
      factor = 1;
    if (factor < 0)
      return invalid("key " + key("rope.scaling.factor") + " is " + std::to_string(factor) + ", a negative number");
    if (type == "yarn")
      return read_yarn(factor, magnitude);
    if (type != "none" && type != "linear")
      return unsupported("key " + name + " is " + quote(type) + "; none, linear and yarn can be converted");
    if (magnitude != 1)
      return unsupported("key " + key("rope.scaling.attn_factor") + " is " + std::to_string(magnitude) +
                         ", which CMF has no field for without yarn");
    if (type == "linear" && factor != 1) {
      factors.resize(dims / 2, 1);
      for (double& f : factors)
        f *= factor;
    }
    return {};
  }

  Status read_yarn(double factor, double magnitude) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t context, size("context_length"));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t original, size_or("rope.scaling.original_context_length", context));
    CORTIQ_ASSIGN_OR_RETURN(const double fast, number("rope.scaling.yarn_beta_fast", 32));
    CORTIQ_ASSIGN_OR_RETURN(const double slow, number("rope.scaling.yarn_beta_slow", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double ext, number("rope.scaling.yarn_ext_factor", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double log, number("rope.scaling.yarn_log_multiplier", 0));
    if (ext != 1)
      return unsupported("key " + key("rope.scaling.yarn_ext_factor") + " is " + std::to_string(ext) +
                         ", which CMF has no field for");
    magnitude *= 1 + 0.1 * std::log(factor);
    if (log != 0)
      magnitude /= 1 + 0.1 * log * std::log(factor);
    if (!std::isfinite(magnitude))
      return invalid("key " + key("rope.scaling.yarn_log_multiplier") + " makes the rotation infinite");
    json_["yarn"] = {{"factor", factor},
                     {"original_max_position_embeddings", original},
                     {"beta_fast", fast},
                     {"beta_slow", slow},
                     {"attention_factor", magnitude}};
    return {};
  }

  const GgufFile& file_;
  const GgufArch& arch_;
  Json json_ = Json::object();
  GgufSizes sizes_;
};

} // namespace

StatusOr<GgufHeader> read_gguf_header(const GgufFile& file, const GgufArch& arch) {
  return HeaderReader(file, arch).read();
}

} // namespace cortiq::convert
