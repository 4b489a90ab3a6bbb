// gemma3: as gemma2 without the caps, with norms on every query and key head. Window layers rotate by a base of their
// own, which no factor scales.

#include <cmath>

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

constexpr size_t kLargeLayers = 62; // as gemma2's

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                 .norms = kSandwichNorms,
                                                 .activation = cmf::Activation::gelu_tanh,
                                                 .window = {.pattern = 6, .ownRotation = true, .base = 10000}}));
  ModelDescription& model = reader.model();
  model.embedScale = std::sqrt(static_cast<double>(model.hidden));
  if (model.layers.size() == kLargeLayers)
    model.attentionScale = 1 / std::sqrt(static_cast<double>(model.hidden / model.layers[0].heads));
  return {};
}

} // namespace

const Architecture kGemma3 = {"gemma3", describe};

} // namespace cortiq::compiler
