// qwen3moe: norms on every query and key head; the chosen experts' weights are divided by their sum.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen3Moe = {"qwen3moe", [](GgufReader& reader) {
                                  return reader.describeDecoder(
                                      {.headNorms = HeadNorms::kPerHead, .experts = ExpertTraits{.normalize = true}});
                                }};

} // namespace cortiq::compiler
