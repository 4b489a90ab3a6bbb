#pragma once

// What an AArch64 target has beyond ARMv8.0 with NEON: data, never a question to the host.

#include "formats/status.h"
#include <string>
#include <string_view>
#include <vector>

namespace cortiq::codegen {

struct Aarch64Features {
  bool dotprod = false; ///< SDOT and UDOT
  bool i8mm = false;    ///< SMMLA and USDOT; with it always dotprod
};

/// Features of a named target: "armv8", "dotprod", "i8mm".
StatusOr<Aarch64Features> aarch64_target(std::string_view target);

/// The feature names of a named target as /proc/cpuinfo has them, or nothing for an unknown one.
std::vector<std::string> aarch64_target_features(std::string_view target);

} // namespace cortiq::codegen
