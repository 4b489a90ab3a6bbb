// qwen2vl: the language model of Qwen 2 VL and 2.5 VL. In text all positions of a token are equal, so its rotation is
// that of qwen2.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen2Vl = {"qwen2vl", [](GgufReader& reader) { return reader.describeDecoder({}); }};

} // namespace cortiq::compiler
