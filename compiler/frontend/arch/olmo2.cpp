// olmo2: OLMo 2 and 3. Norms behind the blocks only, and over whole queries and keys. With a window (OLMo 3) its
// layers rotate without scaling.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kOlmo2 = {"olmo2", [](GgufReader& reader) {
                               return reader.describeDecoder({.headNorms = HeadNorms::kWholeVector,
                                                              .norms = kPostNorms,
                                                              .window = {.pattern = 4, .ownRotation = true}});
                             }};

} // namespace cortiq::compiler
