// gemma3: as gemma2 without the caps, with norms on every query and key head. Window layers rotate by a base of their
// own, which no factor scales.

#include "compiler/frontend/arch/Architecture.h"
#include "compiler/frontend/arch/gemma.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                 .norms = kSandwichNorms,
                                                 .activation = cmf::Activation::gelu_tanh,
                                                 .window = {.pattern = 6, .ownRotation = true, .base = 10000}}));
  scaleAsGemma(reader.model(), /*largeLayers=*/62);
  return {};
}

} // namespace

const Architecture kGemma3 = {"gemma3", describe};

} // namespace cortiq::compiler
