#pragma once

#include "compiler/frontend/GgufReader.h"

namespace cortiq::compiler {

/// What all Gemmas scale: the embedding by the root of the width and, in a generation's model of `largeLayers` layers,
/// whose heads are not hidden / heads wide, scores as if they were.
void scaleAsGemma(ModelDescription& model, size_t largeLayers = 0);

} // namespace cortiq::compiler
