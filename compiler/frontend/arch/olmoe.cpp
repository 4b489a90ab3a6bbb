// olmoe: norms over all queries and all keys; the chosen experts' weights stay as they are.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kOlmoe = {
    "olmoe", [](GgufReader& reader) {
      return reader.describeDecoder(
          {.headNorms = HeadNorms::kWholeVector, .experts = ExpertTraits{.width = ExpertWidth::kFeedForward}});
    }};

} // namespace cortiq::compiler
