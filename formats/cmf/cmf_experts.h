#pragma once

// Whether the routers and the experts of a mixture belong together.

#include "formats/cmf/cmf_file.h"
#include "formats/status.h"

namespace cortiq::formats {

/// Refuses a layer whose router has no arch.moe, no experts, or another number of rows than there are experts (3.8).
/// Messages begin with the file's name. For those who build a model: a file with such a fault can still be looked at.
Status check_cmf_experts(const CmfFile& file);

} // namespace cortiq::formats
