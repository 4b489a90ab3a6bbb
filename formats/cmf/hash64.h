#pragma once

#include <cstdint>
#include <span>

namespace cortiq::formats {

/// The 64-bit checksum of CMF (specification 1.3). Not cryptographic. Empty input gives 0, which CMF also uses as
/// "absent".
uint64_t hash64(std::span<const uint8_t> bytes);

} // namespace cortiq::formats
