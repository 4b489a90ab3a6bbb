// seed_oss: biases on queries, keys and values; the norm in front of the feed-forward block has another name.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kSeedOss = {"seed_oss",
                               [](GgufReader& reader) { return reader.describeDecoder({.norms = kRenamedPreNorms}); }};

} // namespace cortiq::compiler
