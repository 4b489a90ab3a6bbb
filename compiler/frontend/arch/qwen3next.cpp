// qwen3next: gated delta layers whose value heads follow their key heads, attention with a gate beside its queries,
// experts and a gated shared one in every layer.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen3Next = {"qwen3next", [](GgufReader& reader) {
                                   return reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                                  .norms = kRenamedPreNorms,
                                                                  .recurrent = RecurrentMixer::kGatedDelta,
                                                                  .gatedQueries = true,
                                                                  .experts = ExpertTraits{.normalize = true}});
                                 }};

} // namespace cortiq::compiler
