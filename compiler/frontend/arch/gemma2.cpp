// gemma2: norms around both blocks, windows in every other layer, caps on scores and logits. The files have 1 added to
// their norms already.

#include "compiler/frontend/arch/Architecture.h"
#include "compiler/frontend/arch/gemma.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.norms = kSandwichNorms,
                                                 .activation = cmf::Activation::gelu_tanh,
                                                 .window = {.pattern = 2, .width = 4096},
                                                 .attentionSoftcap = 50,
                                                 .finalSoftcap = 30}));
  scaleAsGemma(reader.model(), /*largeLayers=*/46);
  return {};
}

} // namespace

const Architecture kGemma2 = {"gemma2", describe};

} // namespace cortiq::compiler
