#pragma once

// Mixers with recurrent state in CMF files (CMF specification 3.9).

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Whether layer `index` has such a mixer.
bool hasCmfLinearMixer(const formats::CmfFile& file, int64_t index);

/// Adds the weights of layer `index`, says its mixer in `layer` and its sizes in the model.
Status describeCmfLinearMixer(const formats::CmfFile& file, int64_t index, LayerDescription& layer,
                              ModelDescription& model);

} // namespace cortiq::compiler
