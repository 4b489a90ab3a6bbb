// The rotary position encoding, by config.json.

#include <cmath>

#include "formats/quote.h"
#include "tools/cortiq-convert/hf_config.h"
#include "tools/cortiq-convert/rope_fields.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;

namespace {

const Json& empty_object() {
  static const Json object = Json::object();
  return object;
}

class RopeReader {
public:
  RopeReader(const HfFields& fields, HfHeader& header)
      : fields_(fields), header_(header), s_(header.sizes), arch_(header.arch) {}

  Status read() {
    // Newer files have one object for all of it, or one for each kind of layer; older ones the base beside
    // rope_scaling.
    const Json* newer = fields_.find("rope_parameters");
    const Json* older = fields_.find("rope_scaling");
    const Json& given = newer ? *newer : older ? *older : empty_object();
    if (!given.is_object())
      return invalid("rope_scaling is no object");
    const Json* full = HfFields(given).find("full_attention");
    const Json* local = HfFields(given).find("sliding_attention");
    const HfFields scaling(full && full->is_object() ? *full : given);
    CORTIQ_ASSIGN_OR_RETURN(base_, fields_.number("rope_theta", 10000));
    CORTIQ_ASSIGN_OR_RETURN(base_, scaling.number("rope_theta", base_));
    if (base_ <= 0)
      return invalid("rope_theta is not positive");
    arch_["rope_theta"] = base_;
    CORTIQ_RETURN_IF_ERROR(read_dims(scaling));
    CORTIQ_RETURN_IF_ERROR(read_windows(local));
    return read_type(scaling);
  }

private:
  Status read_dims(const HfFields& scaling) {
    CORTIQ_ASSIGN_OR_RETURN(const double beside, fields_.number("partial_rotary_factor", header_.type->rotary));
    CORTIQ_ASSIGN_OR_RETURN(const double part, scaling.number("partial_rotary_factor", beside));
    dims_ = static_cast<uint64_t>(static_cast<double>(s_.head_dim) * part);
    if (!(part > 0 && part <= 1) || dims_ < 2 || dims_ % 2 != 0)
      return invalid("partial_rotary_factor leaves no even number of dimensions to rotate");
    arch_["partial_rotary_factor"] = partial_factor(dims_, s_.head_dim);
    return {};
  }

  /// Gemma 3 rotates its window layers by another base.
  Status read_windows(const Json* local) {
    const HfFields object(local && local->is_object() ? *local : empty_object());
    CORTIQ_ASSIGN_OR_RETURN(const double older, fields_.number("rope_local_base_freq", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double base, object.number("rope_theta", older));
    if (base < 0)
      return invalid("rope_local_base_freq is not positive");
    if (base > 0 && s_.windows())
      arch_["rope_local_base_freq"] = base;
    return {};
  }

  Status read_type(const HfFields& scaling) {
    CORTIQ_ASSIGN_OR_RETURN(const std::string older, scaling.text("type", "default"));
    CORTIQ_ASSIGN_OR_RETURN(const std::string name, scaling.text("rope_type", older));
    if (name == "default")
      return {};
    if (name == "longrope" || name == "su")
      return read_long(scaling);
    if (name == "dynamic" && scaling.has("alpha"))
      return read_alpha(scaling);
    if (name != "linear" && name != "llama3" && name != "yarn")
      return unsupported("the rope_type is " + quote(name) +
                         "; default, linear, llama3, longrope and yarn can be converted");
    CORTIQ_ASSIGN_OR_RETURN(const double factor, scaling.number("factor"));
    if (factor <= 0)
      return invalid("the factor of rope_scaling is not positive");
    if (name == "linear") {
      arch_["rope_freq_factors"] = std::vector<double>(dims_ / 2, factor);
      return {};
    }
    if (name == "llama3")
      return read_llama3(scaling, factor);
    return read_yarn(scaling, factor);
  }

  /// HunYuan's alpha is a larger base.
  Status read_alpha(const HfFields& scaling) {
    CORTIQ_ASSIGN_OR_RETURN(const double alpha, scaling.number("alpha"));
    const double d = static_cast<double>(s_.head_dim);
    const double base = base_ * std::pow(alpha, d / (d - 2));
    if (!(alpha > 0) || !std::isfinite(base) || base <= 0)
      return invalid("alpha of rope_scaling makes no sense");
    arch_["rope_theta"] = base;
    return {};
  }

  Status read_llama3(const HfFields& scaling, double factor) {
    Llama3Scaling llama3{.factor = factor};
    CORTIQ_ASSIGN_OR_RETURN(llama3.low, scaling.number("low_freq_factor"));
    CORTIQ_ASSIGN_OR_RETURN(llama3.high, scaling.number("high_freq_factor"));
    CORTIQ_ASSIGN_OR_RETURN(llama3.original_context, scaling.number("original_max_position_embeddings"));
    if (!(llama3.high > llama3.low) || !(llama3.original_context > 0))
      return invalid("rope_scaling has frequency factors or a context that make no sense");
    arch_["rope_freq_factors"] = llama3_factors(base_, dims_, llama3);
    return {};
  }

  StatusOr<uint64_t> original_context(const HfFields& scaling) const {
    CORTIQ_ASSIGN_OR_RETURN(const double beside,
                            fields_.number("original_max_position_embeddings", static_cast<double>(s_.context)));
    CORTIQ_ASSIGN_OR_RETURN(const double original, scaling.number("original_max_position_embeddings", beside));
    if (original < 2 || original > static_cast<double>(kMostSize))
      return invalid("original_max_position_embeddings is no size that a model can have");
    return static_cast<uint64_t>(original);
  }

  /// The table for contexts up to the original one; CMF has room for one only.
  Status read_long(const HfFields& scaling) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t original, original_context(scaling));
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<double> factors, scaling.numbers("short_factor", dims_ / 2));
    const double times = static_cast<double>(s_.context) / static_cast<double>(original);
    CORTIQ_ASSIGN_OR_RETURN(const double factor, scaling.number("factor", times));
    const double otherwise =
        factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
    CORTIQ_ASSIGN_OR_RETURN(const double magnitude, scaling.number("attention_factor", otherwise));
    arch_["rope_freq_factors"] = factors;
    if (original < s_.context) {
      arch_["max_position_embeddings"] = original;
      header_.warnings.push_back("the context is " + std::to_string(original) + " instead of " +
                                 std::to_string(s_.context) +
                                 ": beyond, other frequency factors hold (long_factor), and CMF has room for one");
    }
    return write_magnitude(magnitude, original);
  }

  /// A factor on cosine and sine is a field of YaRN; with the factor 1 that does nothing else.
  Status write_magnitude(double magnitude, uint64_t original) {
    if (magnitude == 1)
      return {};
    if (s_.windows())
      return unsupported("rope_scaling together with a sliding window: CMF does not scale window layers");
    arch_["yarn"] = {{"factor", 1}, {"original_max_position_embeddings", original}, {"attention_factor", magnitude}};
    return {};
  }

  static double log_scale(double factor, double by) { return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1; }

  Status read_yarn(const HfFields& scaling, double factor) {
    if (s_.windows())
      return unsupported("yarn together with a sliding window: CMF does not scale window layers");
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t original, original_context(scaling));
    CORTIQ_ASSIGN_OR_RETURN(const double fast, scaling.number("beta_fast", 32));
    CORTIQ_ASSIGN_OR_RETURN(const double slow, scaling.number("beta_slow", 1));
    CORTIQ_ASSIGN_OR_RETURN(const bool rounded, scaling.flag("truncate", true));
    CORTIQ_ASSIGN_OR_RETURN(const double mscale, scaling.number("mscale", 0));
    CORTIQ_ASSIGN_OR_RETURN(const double all, scaling.number("mscale_all_dim", 0));
    const bool both = mscale != 0 && all != 0;
    const double otherwise = both ? log_scale(factor, mscale) / log_scale(factor, all) : log_scale(factor, 1);
    CORTIQ_ASSIGN_OR_RETURN(const double magnitude, scaling.number("attention_factor", otherwise));
    const bool latent = header_.type->mixer == HfMixer::kLatent;
    const YarnScaling yarn{.factor = factor,
                           .original_context = static_cast<double>(original),
                           .fast = fast,
                           .slow = slow,
                           .rounded = rounded};
    if (!latent && same_yarn_in_cmf(yarn, base_, dims_)) {
      arch_["yarn"] = {{"factor", factor},
                       {"original_max_position_embeddings", original},
                       {"beta_fast", fast},
                       {"beta_slow", slow},
                       {"attention_factor", magnitude}};
      return {};
    }
    arch_["rope_freq_factors"] = yarn_factors(yarn, base_, dims_);
    if (!latent)
      return write_magnitude(magnitude, original);
    // CMF leaves the frequencies of latent attention alone, but divides them by factors.
    arch_["yarn"] = {
        {"factor", factor}, {"original_max_position_embeddings", original}, {"attention_factor", magnitude}};
    if (all > 0)
      arch_["yarn"]["mscale_all_dim"] = all;
    return {};
  }

  const HfFields& fields_;
  HfHeader& header_;
  HfSizes& s_;
  Json& arch_;
  double base_ = 0;
  uint64_t dims_ = 0;
};

} // namespace

Status read_hf_rope(const HfFields& fields, HfHeader& header) {
  return RopeReader(fields, header).read();
}

} // namespace cortiq::convert
