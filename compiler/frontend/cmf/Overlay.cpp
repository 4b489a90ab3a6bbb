#include "compiler/frontend/cmf/Overlay.h"

#include "compiler/frontend/cmf/Weights.h"
#include "formats/cmf/cmf_overlay.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

namespace {

Status addAlternatives(const CmfFile& file, ModelDescription& model, const std::string& name, const WeightRef& base) {
  for (size_t skill = 0; skill < model.overlay.skills.size(); ++skill) {
    const Tensor* tensor = file.find(formats::skill_tensor_name(model.overlay.skills[skill].id, base.tensor->name));
    if (!tensor)
      continue;
    if (tensor->shape != base.tensor->shape)
      return invalid("tensor " + formats::quote(tensor->name) + " has shape " + formats::shape_text(tensor->shape) +
                     ", but replaces one of " + formats::shape_text(base.tensor->shape));
    if (const auto codec = formats::weight_codec(*tensor); !codec.ok())
      return codec.status();
    SkillWeight alternative{static_cast<int64_t>(skill), base};
    alternative.weight.tensor = tensor;
    model.alternatives[name].push_back(std::move(alternative));
  }
  return {};
}

// Task tubes (specification 4.11): further triples of a dense block, numbered from 1 without gaps.
Status describeTubes(const CmfFile& file, ModelDescription& model, int64_t layer) {
  for (int64_t tube = 1;; ++tube) {
    auto name = [&](const char* role) {
      return layerName(layer, std::string("mlp.") + role + ".tube" + std::to_string(tube) + ".weight");
    };
    const Tensor* gate = file.find(name("gate_proj"));
    if (!gate)
      return {};
    const int64_t width = gate->shape.size() == 2 ? static_cast<int64_t>(gate->shape[0]) : 0;
    if (width <= 0 || width > kMaxModelSize)
      return invalid("tensor " + formats::quote(gate->name) + " has shape " + formats::shape_text(gate->shape) +
                     ", which no task tube can have");
    struct Part {
      const char* role;
      std::vector<int64_t> shape;
    };
    for (const Part& part : {Part{"gate_proj", {width, model.hidden}}, Part{"up_proj", {width, model.hidden}},
                             Part{"down_proj", {model.hidden, width}}})
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, name(part.role), part.shape));
  }
}

} // namespace

Status describeCmfOverlay(const CmfFile& file, ModelDescription& model) {
  CORTIQ_ASSIGN_OR_RETURN(model.overlay, formats::read_cmf_overlay(file));
  for (size_t layer = 0; layer < model.layers.size(); ++layer)
    if (model.layers[layer].feedForward == FeedForward::kGated)
      CORTIQ_RETURN_IF_ERROR(describeTubes(file, model, static_cast<int64_t>(layer)));
  for (const auto& [name, base] : model.weights)
    CORTIQ_RETURN_IF_ERROR(addAlternatives(file, model, name, base));
  return {};
}

} // namespace cortiq::compiler
