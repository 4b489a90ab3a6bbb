// gemma: the first Gemma. The files have 1 added to their norms already.

#include <cmath>

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.activation = cmf::Activation::gelu_tanh}));
  reader.model().embedScale = std::sqrt(static_cast<double>(reader.model().hidden));
  return {};
}

} // namespace

const Architecture kGemma = {"gemma", describe};

} // namespace cortiq::compiler
