#pragma once

// Layers of bounded attention in CMF files (CMF specification 3.11): a window, and anchors that every token sees.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Adds to an attention of layer `index` what bounds it; nothing to other layers.
Status describeCmfBounds(const formats::CmfFile& file, int64_t index, LayerDescription& layer, ModelDescription& model);

} // namespace cortiq::compiler
