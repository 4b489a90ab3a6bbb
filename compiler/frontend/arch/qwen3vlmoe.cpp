// qwen3vlmoe: the language model of Qwen 3 VL with experts; in text it is a qwen3moe.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kQwen3VlMoe = {"qwen3vlmoe", [](GgufReader& reader) {
                                    return reader.describeDecoder(
                                        {.headNorms = HeadNorms::kPerHead, .experts = ExpertTraits{.normalize = true}});
                                  }};

} // namespace cortiq::compiler
