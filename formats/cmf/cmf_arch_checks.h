#pragma once

// The cross-checks of CMF specification 1.5 (with 3.11 and 3.12): blocks of `arch` that must agree with other fields.

#include "formats/cmf/cmf_arch.h"

namespace cortiq::formats {

/// The linear-attention core: known kind, and phase-delta layers where its kind wants them.
Status check_linear_core(const CmfArch& arch);
/// Bounded attention: the record exists exactly when such layers do, and its numbers are in range.
Status check_anchor_core(const CmfArch& arch, const Json& json);
/// The Prism transform's record: the one version that is specified, with consistent widths and signs.
Status check_prism(const CmfArch& arch, const Json& json);

} // namespace cortiq::formats
