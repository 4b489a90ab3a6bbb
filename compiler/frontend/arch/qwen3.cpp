// qwen3: norms on every query and key head.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen3 = {
    "qwen3", [](GgufReader& reader) { return reader.describeDecoder({.headNorms = HeadNorms::kPerHead}); }};

} // namespace cortiq::compiler
