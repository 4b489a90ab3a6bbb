// gemma: the first Gemma. The files have 1 added to their norms already.

#include "compiler/frontend/arch/gemma.h"

#include <cmath>

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.activation = cmf::Activation::gelu_tanh}));
  scaleAsGemma(reader.model());
  return {};
}

} // namespace

void scaleAsGemma(ModelDescription& model, size_t largeLayers) {
  model.embedScale = std::sqrt(static_cast<double>(model.hidden));
  if (model.layers.size() == largeLayers)
    model.attentionScale = 1 / std::sqrt(static_cast<double>(model.hidden / model.layers[0].heads));
}

const Architecture kGemma = {"gemma", describe};

} // namespace cortiq::compiler
