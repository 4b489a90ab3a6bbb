// qwen35moe: as qwen35, with experts and a gated shared one in every layer.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen35Moe = {"qwen35moe", [](GgufReader& reader) {
                                   return reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                                  .norms = kRenamedPreNorms,
                                                                  .recurrent = RecurrentMixer::kGatedDelta,
                                                                  .tiledHeads = true,
                                                                  .gatedQueries = true,
                                                                  .experts = ExpertTraits{.normalize = true}});
                                 }};

} // namespace cortiq::compiler
