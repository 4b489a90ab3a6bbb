#pragma once

// The MTP block of CMF files (CMF specification 3.13): what surrounds it, and whether there is one.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Whether the file has such a block; its tensors decide. One that cannot be built though the model can is a warning in
/// `model`; one against the format's rules is a failure.
StatusOr<bool> hasCmfDraft(const formats::CmfFile& file, ModelDescription& model);

/// Adds its norms, the projection in front of it, and an embedding or a head of its own where there is one.
Status describeCmfDraftEnds(const formats::CmfFile& file, ModelDescription& model);

} // namespace cortiq::compiler
