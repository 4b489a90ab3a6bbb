// qwen35: gated delta layers, whose value heads are stored tiled over the key heads, and attention with a gate beside
// its queries.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen35 = {"qwen35", [](GgufReader& reader) {
                                return reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                               .norms = kRenamedPreNorms,
                                                               .recurrent = RecurrentMixer::kGatedDelta,
                                                               .tiledHeads = true,
                                                               .gatedQueries = true});
                              }};

} // namespace cortiq::compiler
