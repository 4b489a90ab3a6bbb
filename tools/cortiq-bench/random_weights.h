#pragma once

// Matrices that exist only to be measured.

#include <cstdint>
#include <string>
#include <utility>

#include "formats/status.h"

namespace cortiq::bench {

/// Reads ROWSxCOLS; fails where that is no matrix of at most 2^34 weights.
StatusOr<std::pair<uint64_t, uint64_t>> parse_shape(const std::string& shape);

/// Writes a payload of valid random blocks, for `codec` as the tools' flags name it. `option` is what messages blame.
Status write_random_weights(const std::string& option, const std::string& codec, const std::string& shape,
                            const std::string& path);

} // namespace cortiq::bench
