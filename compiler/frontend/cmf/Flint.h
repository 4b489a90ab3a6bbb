#pragma once

// The architecture flint, whose files may have one geometry only (CMF specification 3.12).

#include "formats/cmf/cmf_file.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// Fails, naming the first fact that differs, for a flint file of another geometry; other architectures pass.
Status checkCmfFlint(const formats::CmfFile& file);

} // namespace cortiq::compiler
