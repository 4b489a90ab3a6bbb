// deepseek2: DeepSeek V2 and V3, Kimi K2 and others. Multi-head latent attention. YaRN also changes the scores' scale,
// and its log multiplier is stored times 0.1.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  return reader.describeDecoder({.pairing = RopePairing::kNeighbours,
                                 .latent = true,
                                 .experts = ExpertTraits{.normalizeByKey = true, .width = ExpertWidth::kRequired}});
}

} // namespace

const Architecture kDeepseek2 = {"deepseek2", describe};

} // namespace cortiq::compiler
