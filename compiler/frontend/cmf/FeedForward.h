#pragma once

// Feed-forward blocks of CMF files: gated, of experts, or both.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Adds the weights of layer `index`, or of the block that guesses. The width is that of the tensors: pruned files have
/// layers narrower than arch.intermediate_size.
Status describeCmfFeedForward(const formats::CmfFile& file, int64_t index, ModelDescription& model);

} // namespace cortiq::compiler
