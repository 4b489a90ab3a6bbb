// phi3: Phi-3, 3.5 and 4. Fused matrices, partial rotation, two sets of frequency factors; a window key is ignored.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kPhi3 = {"phi3", [](GgufReader& reader) {
                              return reader.describeDecoder({.gate = GateTensors::kFused, .longFactors = true});
                            }};

} // namespace cortiq::compiler
