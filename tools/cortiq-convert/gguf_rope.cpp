// Keys about the rotary position encoding. CMF has fields for YaRN, and divisors of the frequencies for all else that
// is fixed: linear scaling, Llama 3, one of the two tables of longrope.

#include <algorithm>
#include <cmath>

#include "formats/quote.h"
#include "tools/cortiq-convert/gguf_header.h"
#include "tools/cortiq-convert/rope_fields.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;
using formats::Tensor;

namespace {

class RopeReader {
public:
  RopeReader(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header)
      : keys_(keys), arch_(arch), header_(header), sizes_(header.sizes), json_(header.arch) {}

  Status read() {
    CORTIQ_RETURN_IF_ERROR(read_dims());
    CORTIQ_ASSIGN_OR_RETURN(base_, keys_.number("rope.freq_base", 10000));
    if (base_ <= 0)
      return invalid("key " + keys_.name("rope.freq_base") + " is " + std::to_string(base_) +
                     ", not a positive number");
    json_["rope_theta"] = base_;
    CORTIQ_ASSIGN_OR_RETURN(context_, keys_.size("context_length"));
    CORTIQ_ASSIGN_OR_RETURN(original_, keys_.size_or("rope.scaling.original_context_length", context_));
    CORTIQ_RETURN_IF_ERROR(read_windows());
    CORTIQ_RETURN_IF_ERROR(read_scaling());
    if (!factors_.empty())
      json_["rope_freq_factors"] = factors_;
    return {};
  }

private:
  bool latent() const { return arch_.mixer == GgufMixer::kLatent; }
  bool windows() const { return json_.contains("sliding_window"); }

  Status read_dims() {
    const uint64_t head = latent() ? sizes_.latent.rope : sizes_.key_length;
    CORTIQ_ASSIGN_OR_RETURN(sizes_.rotated, keys_.size_or("rope.dimension_count", head));
    // Rows in neighbours are so over whole heads.
    const bool whole = arch_.pairing == GgufPairing::kNeighbours;
    if (sizes_.rotated % 2 != 0 || sizes_.rotated > head || (whole && sizes_.rotated != head))
      return invalid("key " + keys_.name("rope.dimension_count") + " is " + std::to_string(sizes_.rotated) +
                     ", but the head size is " + std::to_string(head));
    json_["partial_rotary_factor"] = partial_factor(sizes_.rotated, head);
    CORTIQ_ASSIGN_OR_RETURN(const bool on, keys_.file().get_bool_or(keys_.name("rope.scaling.finetuned"), true));
    if (arch_.divides_logits && !on)
      return keys_.refuse("rope.scaling.finetuned", "false", "so nothing is rotated, which CMF has no field for");
    return {};
  }

  Status read_windows() {
    if (!windows() || (arch_.window_base == 0 && !keys_.has("rope.freq_base_swa")))
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const double base, keys_.number("rope.freq_base_swa", arch_.window_base));
    if (base <= 0)
      return invalid("key " + keys_.name("rope.freq_base_swa") + " is not a positive number");
    json_["rope_local_base_freq"] = base;
    return {};
  }

  Status add_factors(const char* name) {
    const Tensor* tensor = keys_.file().find(name);
    if (!tensor)
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<float> values, formats::decode_tensor(*tensor));
    const auto bad = [](float f) { return !std::isfinite(f) || f == 0; };
    if (values.size() != sizes_.rotated / 2 || std::any_of(values.begin(), values.end(), bad))
      return invalid("tensor " + quote(name) + " does not hold one finite factor, not zero, for each of the " +
                     std::to_string(sizes_.rotated / 2) + " rotated pairs");
    factors_.assign(values.begin(), values.end());
    return {};
  }

  void scale_factors(const std::vector<double>& by) {
    factors_.resize(sizes_.rotated / 2, 1);
    for (size_t i = 0; i < factors_.size(); ++i)
      factors_[i] *= by[i];
  }

  Status read_scaling() {
    CORTIQ_ASSIGN_OR_RETURN(const std::string_view type,
                            keys_.file().get_string_or(keys_.name("rope.scaling.type"), "linear"));
    CORTIQ_ASSIGN_OR_RETURN(const double old_factor, keys_.number("rope.scale_linear", 0));
    CORTIQ_ASSIGN_OR_RETURN(double factor, keys_.number("rope.scaling.factor", old_factor));
    CORTIQ_ASSIGN_OR_RETURN(const double magnitude, keys_.number("rope.scaling.attn_factor", 1));
    if (factor == 0)
      factor = 1;
    if (factor < 0)
      return invalid("key " + keys_.name("rope.scaling.factor") + " is " + std::to_string(factor) +
                     ", a negative number");
    if (type == "longrope" || (arch_.name == "phi3" && keys_.file().find("rope_factors_short.weight")))
      return read_long(magnitude);
    CORTIQ_RETURN_IF_ERROR(add_factors("rope_freqs.weight"));
    if (type == "yarn")
      return read_yarn(factor, magnitude);
    if (type != "none" && type != "linear")
      return unsupported("key " + keys_.name("rope.scaling.type") + " is " + quote(type) +
                         "; none, linear, yarn and longrope can be converted");
    if (type == "linear" && factor != 1)
      scale_factors(std::vector<double>(sizes_.rotated / 2, factor));
    return write_magnitude(magnitude);
  }

  /// The table for contexts up to the original one; CMF has room for one only.
  Status read_long(double magnitude) {
    CORTIQ_RETURN_IF_ERROR(add_factors("rope_factors_short.weight"));
    if (original_ < context_) {
      json_["max_position_embeddings"] = original_;
      header_.warnings.push_back(
          "the context is " + std::to_string(original_) + " instead of " + std::to_string(context_) +
          ": beyond, other frequency factors hold (rope_factors_long), and CMF has room for one");
    }
    return write_magnitude(magnitude);
  }

  /// A factor on cosine and sine is a field of YaRN; with the factor 1 that does nothing else.
  Status write_magnitude(double magnitude) {
    if (magnitude == 1)
      return {};
    if (windows())
      return keys_.refuse("rope.scaling.attn_factor", std::to_string(magnitude), "which CMF ignores in window layers");
    json_["yarn"] = {{"factor", 1}, {"original_max_position_embeddings", original_}, {"attention_factor", magnitude}};
    return {};
  }

  Status read_yarn(double factor, double magnitude) {
    CORTIQ_ASSIGN_OR_RETURN(const double fast, keys_.number("rope.scaling.yarn_beta_fast", 32));
    CORTIQ_ASSIGN_OR_RETURN(const double slow, keys_.number("rope.scaling.yarn_beta_slow", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double ext, keys_.number("rope.scaling.yarn_ext_factor", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double log, keys_.number("rope.scaling.yarn_log_multiplier", 0));
    if (ext != 1)
      return keys_.refuse("rope.scaling.yarn_ext_factor", std::to_string(ext), "which CMF has no field for");
    if (windows())
      return keys_.refuse("rope.scaling.type", "yarn", "which CMF does not apply to window layers");
    const YarnScaling yarn{
        .factor = factor, .original_context = static_cast<double>(original_), .fast = fast, .slow = slow};
    const double plain = 1 + 0.1 * std::log(factor);
    if (latent())
      return write_latent_yarn(yarn, log == 0 ? magnitude * plain : magnitude, log / 0.1);
    magnitude *= plain;
    if (log != 0)
      magnitude /= 1 + 0.1 * log * std::log(factor);
    if (!std::isfinite(magnitude))
      return invalid("key " + keys_.name("rope.scaling.yarn_log_multiplier") + " makes the rotation infinite");
    if (same_yarn_in_cmf(yarn, base_, sizes_.rotated)) {
      json_["yarn"] = {{"factor", factor},
                       {"original_max_position_embeddings", original_},
                       {"beta_fast", fast},
                       {"beta_slow", slow},
                       {"attention_factor", magnitude}};
      return {};
    }
    scale_factors(yarn_factors(yarn, base_, sizes_.rotated));
    return write_magnitude(magnitude);
  }

  /// CMF leaves the frequencies of latent attention alone, but divides them by factors; its scores are scaled by
  /// (1 + 0.1 mscale_all_dim ln factor)^2.
  Status write_latent_yarn(const YarnScaling& yarn, double magnitude, double log) {
    scale_factors(yarn_factors(yarn, base_, sizes_.rotated));
    json_["yarn"] = {
        {"factor", yarn.factor}, {"original_max_position_embeddings", original_}, {"attention_factor", magnitude}};
    const double step = 0.1 * std::log(yarn.factor);
    const double all = step == 0 ? 0 : (magnitude * (1 + step * log) - 1) / step;
    if (!std::isfinite(all) || all < 0)
      return invalid("key " + keys_.name("rope.scaling.yarn_log_multiplier") + " makes a scale that CMF cannot hold");
    if (all > 0)
      json_["yarn"]["mscale_all_dim"] = all;
    return {};
  }

  const GgufKeys& keys_;
  const GgufArch& arch_;
  GgufHeader& header_;
  GgufSizes& sizes_;
  Json& json_;
  double base_ = 0;
  uint64_t context_ = 0, original_ = 0;
  std::vector<double> factors_;
};

} // namespace

Status read_gguf_rope(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header) {
  return RopeReader(keys, arch, header).read();
}

} // namespace cortiq::convert
