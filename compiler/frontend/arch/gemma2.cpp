// gemma2: norms around both blocks, windows in every other layer, caps on scores and logits. The files have 1 added to
// their norms already.

#include <cmath>

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

constexpr size_t kLargeLayers = 46; // the model whose heads are not hidden / heads wide, and scaled as if they were

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.norms = kSandwichNorms,
                                                 .activation = cmf::Activation::gelu_tanh,
                                                 .window = {.pattern = 2, .width = 4096},
                                                 .attentionSoftcap = 50,
                                                 .finalSoftcap = 30}));
  ModelDescription& model = reader.model();
  model.embedScale = std::sqrt(static_cast<double>(model.hidden));
  if (model.layers.size() == kLargeLayers)
    model.attentionScale = 1 / std::sqrt(static_cast<double>(model.hidden / model.layers[0].heads));
  return {};
}

} // namespace

const Architecture kGemma2 = {"gemma2", describe};

} // namespace cortiq::compiler
