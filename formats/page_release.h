#pragma once

#include <cstdint>
#include <span>

namespace cortiq::formats {

/// Tells the system that `bytes` of a mapped file are not needed for now, so that a walk through a large file does not
/// fill the memory. They stay readable. Only a hint: where the system has no such call nothing happens.
void release_pages(std::span<const uint8_t> bytes);

} // namespace cortiq::formats
