// smollm3: as llama, but every fourth layer does not rotate.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

constexpr size_t kStillStep = 4;

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.pairing = RopePairing::kNeighbours}));
  ModelDescription& model = reader.model();
  model.ropes.push_back({});
  for (size_t i = kStillStep - 1; i < model.layers.size(); i += kStillStep)
    model.layers[i].rope = model.ropes.size() - 1;
  return {};
}

} // namespace

const Architecture kSmollm3 = {"smollm3", describe};

} // namespace cortiq::compiler
