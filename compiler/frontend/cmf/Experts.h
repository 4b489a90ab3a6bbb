#pragma once

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Whether layer `index` of the file has a router.
bool hasCmfExperts(const formats::CmfFile& file, int64_t index);

/// Adds router, experts and shared expert of layer `index` (CMF specification 3.8), and says in the layer how they are
/// used. Experts are counted by presence; each has its own codecs and width.
Status describeCmfExperts(const formats::CmfFile& file, int64_t index, ModelDescription& model);

} // namespace cortiq::compiler
