// mistral3: Ministral 3. As llama, with YaRN and a temperature of the queries.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kMistral3 = {"mistral3", [](GgufReader& reader) {
                                  return reader.describeDecoder(
                                      {.pairing = RopePairing::kNeighbours, .temperature = true});
                                }};

} // namespace cortiq::compiler
