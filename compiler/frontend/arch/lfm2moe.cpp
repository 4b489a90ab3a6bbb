// lfm2moe: as lfm2, with experts behind the leading dense layers, chosen by sigmoid scores and a bias.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kLfm2Moe = {"lfm2moe", [](GgufReader& reader) {
                                 return reader.describeDecoder(
                                     {.headNorms = HeadNorms::kPerHead,
                                      .recurrent = RecurrentMixer::kShortConv,
                                      .outputNorm = "token_embd_norm",
                                      .experts = ExpertTraits{.scoring = cmf::Scoring::sigmoid, .normalize = true}});
                               }};

} // namespace cortiq::compiler
