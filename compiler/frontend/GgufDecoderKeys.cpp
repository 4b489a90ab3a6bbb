// Keys that only some architectures have: scales, windows, a temperature of the queries (GGUF models 1.4 and 1.7).

#include <cmath>

#include "compiler/frontend/GgufReader.h"

namespace cortiq::compiler {

Status GgufReader::readScales(const DecoderTraits& traits) {
  if (traits.scales) {
    CORTIQ_ASSIGN_OR_RETURN(model_.embedScale, number("embedding_scale", 1));
    CORTIQ_ASSIGN_OR_RETURN(model_.residualScale, number("residual_scale", 1));
    // 0 is what writers put where a scale was not asked for.
    for (double* scale : {&model_.embedScale, &model_.residualScale})
      *scale = *scale == 0 ? 1 : *scale;
  }
  if (traits.logitScale == LogitScale::kNone)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const double scale, file_.get_f64(key("logit_scale")));
  if (!std::isfinite(scale) || scale == 0)
    return invalid("key " + key("logit_scale") + " is " + std::to_string(scale) + ", which leaves no logits");
  model_.logitScale = traits.logitScale == LogitScale::kDivides ? 1 / scale : scale;
  return {};
}

Status GgufReader::readTemperature() {
  CORTIQ_ASSIGN_OR_RETURN(const double scale, number("attention.temperature_scale", 0));
  if (scale == 0)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const int64_t original, size("rope.scaling.original_context_length", model_.trainedContext));
  CORTIQ_ASSIGN_OR_RETURN(const int64_t length, size("attention.temperature_length", original));
  model_.queryTemperature = {static_cast<double>(length), scale};
  return {};
}

StatusOr<std::vector<bool>> GgufReader::windowLayers(const WindowRule& rule) const {
  const std::string name = key("attention.sliding_window_pattern");
  const formats::GgufEntry* entry = file_.entry(name);
  const auto* array = entry ? std::get_if<formats::GgufArray>(&entry->value) : nullptr;
  if (array && array->element == formats::GgufType::kBool)
    return file_.get_per_layer_bool(name, model_.layers.size());
  CORTIQ_ASSIGN_OR_RETURN(const int64_t pattern, size("attention.sliding_window_pattern", rule.pattern));
  std::vector<bool> layers(model_.layers.size());
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i] = static_cast<int64_t>(i) % pattern < pattern - 1;
  return layers;
}

Status GgufReader::readWindows(const WindowRule& rule) {
  if (rule.pattern == 0)
    return {};
  const std::string name = key("attention.sliding_window");
  if (rule.required)
    CORTIQ_RETURN_IF_ERROR(file_.get_u64(name).status());
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t width, file_.get_u64_or(name, static_cast<uint64_t>(rule.width)));
  if (width == 0)
    return {};
  for (const char* suffix : {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"})
    if (const char* plain = suffix == std::string_view("attention.value_length_swa") ? "attention.value_length"
                            : suffix == std::string_view("rope.dimension_count_swa") ? "rope.dimension_count"
                                                                                     : "attention.key_length";
        file_.has(key(suffix))) {
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t local, file_.get_u64(key(suffix)));
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t global, file_.get_u64_or(key(plain), static_cast<uint64_t>(keyLength_)));
      if (local != global)
        return unsupported("key " + key(suffix) + " is " + std::to_string(local) + ", but " + key(plain) + " is " +
                           std::to_string(global) + "; heads of two sizes are not built for this architecture");
    }
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<bool> layers, windowLayers(rule));
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i]) {
      model_.layers[i].window = static_cast<int64_t>(std::min<uint64_t>(width, kMaxModelSize));
      model_.layers[i].rope = rule.ownRotation ? 1 : 0;
    }
  return {};
}

} // namespace cortiq::compiler
