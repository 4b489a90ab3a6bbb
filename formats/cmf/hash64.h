#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cortiq::formats {

/// The 64-bit checksum of CMF (specification 1.3). Not cryptographic. Empty input gives 0, which CMF also uses as
/// "absent".
uint64_t hash64(std::span<const uint8_t> bytes);

/// A hash as the header writes it: exactly sixteen hexadecimal digits. Nothing for any other text.
std::optional<uint64_t> parse_hash64(std::string_view text);

} // namespace cortiq::formats
