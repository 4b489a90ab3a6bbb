// starcoder2: LayerNorm and biases everywhere, no gate.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

const Architecture kStarcoder2 = {"starcoder2", [](GgufReader& reader) {
                                    return reader.describeDecoder({.layerNorms = true,
                                                                   .gate = GateTensors::kNone,
                                                                   .activation = cmf::Activation::gelu_tanh});
                                  }};

} // namespace cortiq::compiler
