// The rotary tables that a GGUF file's keys and frequency factors describe (GGUF models 1.3 and 2.6).

#include <cmath>

#include "compiler/frontend/GgufReader.h"
#include "compiler/frontend/RopeTables.h"
#include "formats/quote.h"

namespace cortiq::compiler {

Status GgufReader::readRope(const DecoderTraits& traits) {
  const std::string name = key("rope.dimension_count");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t dims, file_.get_u64_or(name, keyLength_));
  const uint64_t head = static_cast<uint64_t>(keyLength_);
  if (dims == 0 || dims % 2 != 0 || dims > head || (traits.rotatesWholeHead && dims != head))
    return invalid("key " + name + " is " + std::to_string(dims) + ", but the head size is " + std::to_string(head) +
                   (traits.rotatesWholeHead ? ", and this architecture rotates whole heads"
                                            : ": it must be even, positive and no more than that"));
  CORTIQ_ASSIGN_OR_RETURN(const double base, number("rope.freq_base", 10000));
  if (base <= 0)
    return invalid("key " + key("rope.freq_base") + " is " + std::to_string(base) + ", not a positive number");
  std::vector<double> frequencies = plainFrequencies(base, static_cast<int64_t>(dims));
  double magnitude = 1;
  CORTIQ_ASSIGN_OR_RETURN(const std::string factors, factorTensor(traits));
  CORTIQ_RETURN_IF_ERROR(readFrequencyFactors(factors, frequencies));
  CORTIQ_RETURN_IF_ERROR(readRopeScaling(traits, frequencies, base, magnitude));
  CORTIQ_RETURN_IF_ERROR(addRope(model_, frequencies, magnitude));
  if (!traits.window.ownRotation)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const double local,
                          number("rope.freq_base_swa", traits.window.base != 0 ? traits.window.base : base));
  if (local <= 0)
    return invalid("key " + key("rope.freq_base_swa") + " is " + std::to_string(local) + ", not a positive number");
  return addRope(model_, plainFrequencies(local, static_cast<int64_t>(dims)), 1);
}

// The tensor of frequency factors that applies; it need not be there. Of the two of longrope one is for contexts up to
// the original one: unless more is asked for, that one is served, and no more than it is good for.
StatusOr<std::string> GgufReader::factorTensor(const DecoderTraits& traits) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view type, file_.get_string_or(key("rope.scaling.type"), "linear"));
  if ((type != "longrope" && !traits.longFactors) || !file_.find("rope_factors_long.weight"))
    return std::string("rope_freqs.weight");
  CORTIQ_ASSIGN_OR_RETURN(const int64_t original, size("rope.scaling.original_context_length", model_.trainedContext));
  if (maxContext_ > static_cast<uint64_t>(original))
    return std::string("rope_factors_long.weight");
  if (maxContext_ == 0 && original < model_.trainedContext)
    model_.warnings.push_back(formats::quote(file_.path()) + ": rotates for a context of " + std::to_string(original) +
                              "; name a larger one with --max-context to have it rotate for up to " +
                              std::to_string(model_.trainedContext));
  model_.trainedContext = std::min(model_.trainedContext, original);
  return std::string("rope_factors_short.weight");
}

Status GgufReader::readFrequencyFactors(const std::string& name, std::vector<double>& frequencies) const {
  const formats::Tensor* tensor = file_.find(name);
  if (!tensor)
    return {};
  if (tensor->shape.size() != 1 || tensor->shape[0] != frequencies.size())
    return invalid("tensor " + formats::quote(name) + " has shape " + formats::shape_text(tensor->shape) + ", but " +
                   std::to_string(frequencies.size()) + " pairs are rotated");
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<float> factors, formats::decode_tensor(*tensor));
  for (float factor : factors)
    if (!std::isfinite(factor) || factor == 0)
      return invalid("tensor " + formats::quote(name) + " has a factor that is zero or not finite");
  divideFrequencies(frequencies, std::vector<double>(factors.begin(), factors.end()));
  return {};
}

Status GgufReader::readRopeScaling(const DecoderTraits& traits, std::vector<double>& frequencies, double base,
                                   double& magnitude) {
  const std::string name = key("rope.scaling.type");
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view type, file_.get_string_or(name, "linear"));
  CORTIQ_ASSIGN_OR_RETURN(const double oldFactor, number("rope.scale_linear", 0));
  CORTIQ_ASSIGN_OR_RETURN(double factor, number("rope.scaling.factor", oldFactor));
  CORTIQ_ASSIGN_OR_RETURN(magnitude, number("rope.scaling.attn_factor", 1));
  if (factor == 0)
    factor = 1;
  if (factor < 0)
    return invalid("key " + key("rope.scaling.factor") + " is " + std::to_string(factor) + ", a negative number");
  if (type == "none")
    return {};
  if (type == "linear" || type == "longrope") {
    for (double& frequency : frequencies)
      frequency /= factor;
    return {};
  }
  if (type != "yarn")
    return unsupported("key " + name + " is " + formats::quote(type) +
                       ", which this compiler does not build; it knows none, linear, yarn and longrope");

  YarnParameters yarn{.factor = factor};
  CORTIQ_ASSIGN_OR_RETURN(const int64_t original, size("rope.scaling.original_context_length", model_.trainedContext));
  yarn.originalContext = static_cast<double>(original);
  CORTIQ_ASSIGN_OR_RETURN(yarn.betaFast, number("rope.scaling.yarn_beta_fast", 32));
  CORTIQ_ASSIGN_OR_RETURN(yarn.betaSlow, number("rope.scaling.yarn_beta_slow", 1));
  CORTIQ_ASSIGN_OR_RETURN(yarn.extFactor, number("rope.scaling.yarn_ext_factor", 1));
  CORTIQ_ASSIGN_OR_RETURN(const double log, number("rope.scaling.yarn_log_multiplier", 0));
  if (!(yarn.betaFast > 0) || !(yarn.betaSlow > 0) || base == 1)
    return invalid("the keys " + key("rope.scaling.yarn_beta_fast") + " and " + key("rope.scaling.yarn_beta_slow") +
                   " must be positive, and " + key("rope.freq_base") + " must not be 1");
  applyYarn(frequencies, base, yarn, YarnClamp::kGguf);
  const double steps = 0.1 * std::log(factor);
  if (!traits.latent) {
    magnitude *= log != 0 ? (1 + steps) / (1 + log * steps) : 1 + steps;
  } else {
    // The file has a tenth of the multiplier.
    const double multiplier = log / 0.1;
    if (log == 0)
      magnitude *= 1 + steps;
    const double score = magnitude * (1 + multiplier * steps);
    model_.attentionScale *= score * score;
  }
  if (!std::isfinite(magnitude))
    return invalid("key " + key("rope.scaling.yarn_log_multiplier") + " is " + std::to_string(log) +
                   ", which makes the rotation infinite");
  return {};
}

} // namespace cortiq::compiler
