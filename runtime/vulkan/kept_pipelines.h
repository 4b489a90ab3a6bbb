#pragma once

// The file that a driver's pipelines are kept in between runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime::vulkan {

inline constexpr uint64_t kMostKeptBytes = 256 << 20;

/// What a whole file holds; nothing where there is none, or one that is cut, changed, of another kind or unreadable.
std::vector<uint8_t> read_kept_pipelines(const std::string& path);

/// Writes the file, and its folder where that is missing; it appears whole or not at all.
Status write_kept_pipelines(const std::string& path, std::span<const uint8_t> bytes);

} // namespace cortiq::runtime::vulkan
