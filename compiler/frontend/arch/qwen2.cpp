// qwen2: Qwen 1.5 to 2.5. Biases on queries, keys and values.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen2 = {"qwen2", [](GgufReader& reader) { return reader.describeDecoder({}); }};

} // namespace cortiq::compiler
