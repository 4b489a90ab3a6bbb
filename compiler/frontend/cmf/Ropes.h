#pragma once

// Rotary tables of CMF files (CMF specification 3.3), and which layers take which.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Makes the model's first two tables: that of global layers, then that of local ones.
Status describeCmfRopes(const formats::CmfFile& file, ModelDescription& model);

/// Whether layer `layer` sees a window only.
bool isCmfLocal(const formats::CmfArch& arch, int64_t layer);

} // namespace cortiq::compiler
