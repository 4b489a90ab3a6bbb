#pragma once

// Text from files and command lines inside messages.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cortiq::formats {

/// `text` in single quotes, fit for a one-line message: control bytes and bytes that are not UTF-8 become \xNN, and
/// what is longer than 200 bytes is cut with "…".
std::string quote(std::string_view text);

/// The same without the quotes, for names in lists.
std::string printable(std::string_view text);

/// True when `bytes` are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view bytes);

/// Sixteen lower-case digits.
std::string hex64(uint64_t value);

/// The shape as people write it: "[128, 64]".
std::string shape_text(std::span<const uint64_t> shape);

} // namespace cortiq::formats
