#pragma once

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// The model of a CMF file. Dispatch is by the tensors that are present and the header, not by the name of the
/// architecture. Refuses, in one sentence, files whose tensors and header do not fit together and features that are not
/// built. The description points into `file`.
StatusOr<ModelDescription> describeCmf(const formats::CmfFile& file);

/// Refuses what the header, or the presence of a tensor, says that this compiler does not build; by its name.
Status refuseCmfFeatures(const formats::CmfFile& file);

} // namespace cortiq::compiler
