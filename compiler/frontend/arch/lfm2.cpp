// lfm2: attention layers among convolutions over time, which have no key/value heads. The final norm bears the name of
// an embedding's.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kLfm2 = {"lfm2", [](GgufReader& reader) {
                              return reader.describeDecoder({.headNorms = HeadNorms::kPerHead,
                                                             .recurrent = RecurrentMixer::kShortConv,
                                                             .outputNorm = "token_embd_norm"});
                            }};

} // namespace cortiq::compiler
