// gpt-oss: attention sinks, biases everywhere, a window in every other layer, experts that are chosen by their logits
// and gated by a clamped activation. The norm in front of the experts has another name.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder(
      {.norms = kRenamedPreNorms,
       .activation = cmf::Activation::swigluoai,
       .window = {.pattern = 2, .required = true},
       .sinks = true,
       .experts = ExpertTraits{.scoring = cmf::Scoring::softmax_selected, .width = ExpertWidth::kRequired}}));
  reader.model().activationAlpha = 1.702;
  reader.model().activationLimit = 7;
  return {};
}

} // namespace

const Architecture kGptOss = {"gpt-oss", describe};

} // namespace cortiq::compiler
