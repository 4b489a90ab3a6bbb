#pragma once

// Sizes of memory on command lines: 8G, 512M, 65536K, or bytes.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cortiq::runtime::cli {

/// Bytes; K, M, G and T are powers of 1024. Nothing for other text, for 0 and for what exceeds 2^62.
std::optional<uint64_t> parse_memory_size(std::string_view text);

/// The check of one option: why its text is no size, empty where it is one.
std::function<std::string(const std::string&)> memory_size();

} // namespace cortiq::runtime::cli
