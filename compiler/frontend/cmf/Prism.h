#pragma once

// arch.prism_hadamard (specification 3.12): weights that were stored behind a Walsh-Hadamard transform of their input.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Adds the transform to a model that is otherwise complete; nothing for files without the block. Fails where it lists
/// what is no plain product of this model.
Status describeCmfPrism(const formats::CmfFile& file, ModelDescription& model);

} // namespace cortiq::compiler
