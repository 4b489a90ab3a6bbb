#pragma once

// Names of checkpoints under the canonical ones (CMF specification 3.1, "canonical renames").

#include <string>
#include <string_view>

namespace cortiq::convert {

/// `name` renamed as far as families differ in words only; what they fuse or stack keeps a name of its own. Empty for
/// tensors that a text decoder does without: towers for images and sound, tables that are computed.
std::string canonical_name(std::string_view name);

} // namespace cortiq::convert
