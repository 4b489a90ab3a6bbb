#pragma once

// Full and sliding attention of CMF files (CMF specification 3.1 to 3.4).

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Adds the weights of layer `index`, or of the block that guesses, and completes `layer`.
Status describeCmfAttention(const formats::CmfFile& file, int64_t index, LayerDescription& layer,
                            ModelDescription& model);

/// Refuses sinks in a layer of another kind: only full and sliding attention have logits without values.
Status refuseCmfSinks(const formats::CmfFile& file, int64_t index);

} // namespace cortiq::compiler
