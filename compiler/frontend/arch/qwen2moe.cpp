// qwen2moe: biases on queries, keys and values; the chosen experts' weights stay as they are; a shared expert with a
// gate.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen2Moe = {"qwen2moe",
                                [](GgufReader& reader) { return reader.describeDecoder({.experts = ExpertTraits{}}); }};

} // namespace cortiq::compiler
