#pragma once

// What the code of each target needs of a processor: shared by the compiler, which writes it into artifacts, and the
// loader, which does not take an artifact's word for it.

#include <cstdint>
#include <span>
#include <string_view>

namespace cortiq::formats {

struct TargetNeeds {
  std::string_view name;                      ///< the word of --target
  std::string_view word;                      ///< the last of its kernels' names
  uint32_t machine;                           ///< as ELF numbers it
  std::span<const std::string_view> features; ///< as /proc/cpuinfo names them, sorted
};

/// All targets there are, the plainest of a machine first.
std::span<const TargetNeeds> target_needs();

/// The row called `name`, or null.
const TargetNeeds* find_target_needs(std::string_view name);

} // namespace cortiq::formats
