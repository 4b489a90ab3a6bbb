// llama: Llama 1 to 3, older Mistral, SmolLM, Yi, TinyLlama and others. Rows of queries and keys are stored for
// rotation of neighbours; Llama 3's scaling comes as frequency factors; a window key is ignored. With experts it is
// Mixtral.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kLlama = {"llama", [](GgufReader& reader) {
                               return reader.describeDecoder(
                                   {.pairing = RopePairing::kNeighbours,
                                    .rotatesWholeHead = true,
                                    .experts = ExpertTraits{.normalize = true, .width = ExpertWidth::kFeedForward}});
                             }};

} // namespace cortiq::compiler
