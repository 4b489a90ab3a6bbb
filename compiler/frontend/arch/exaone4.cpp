// exaone4: norms behind the blocks only, and on every query and key head. With a window (every layer but each fourth)
// the other layers do not rotate.

#include <algorithm>

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(
      reader.describeDecoder({.headNorms = HeadNorms::kPerHead, .norms = kPostNorms, .window = {.pattern = 4}}));
  ModelDescription& model = reader.model();
  const bool windows =
      std::ranges::any_of(model.layers, [](const LayerDescription& layer) { return layer.window.has_value(); });
  if (!windows)
    return {};
  model.ropes.push_back({});
  for (LayerDescription& layer : model.layers)
    if (!layer.window)
      layer.rope = model.ropes.size() - 1;
  return {};
}

} // namespace

const Architecture kExaone4 = {"exaone4", describe};

} // namespace cortiq::compiler
