#pragma once

// Multi-head latent attention of CMF files (CMF specification 3.6).

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// What all such layers share: sizes, scale, and a rotary table, which becomes the model's last. Files with arch.mla
/// only.
Status describeCmfLatentSizes(const formats::CmfFile& file, ModelDescription& model);

/// Whether layer `index` has latent attention.
bool hasCmfLatentAttention(const formats::CmfFile& file, int64_t index);

/// Adds the weights of layer `index` and completes `layer`.
Status describeCmfLatentAttention(const formats::CmfFile& file, int64_t index, LayerDescription& layer,
                                  ModelDescription& model);

} // namespace cortiq::compiler
