// qwen3vl: the language model of Qwen 3 VL; in text it is a qwen3.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen3Vl = {
    "qwen3vl", [](GgufReader& reader) { return reader.describeDecoder({.headNorms = HeadNorms::kPerHead}); }};

} // namespace cortiq::compiler
