// internlm2: as llama.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kInternlm2 = {
    "internlm2", [](GgufReader& reader) { return reader.describeDecoder({.pairing = RopePairing::kNeighbours}); }};

} // namespace cortiq::compiler
