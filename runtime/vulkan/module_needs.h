#pragma once

// What a shader module takes of a device, read from its words.

#include <cstdint>
#include <span>
#include <vector>

namespace cortiq::runtime::vulkan {

struct ModuleNeeds {
  uint64_t invocations = 1;  ///< a workgroup
  uint64_t shared_bytes = 0; ///< of a workgroup
  std::vector<uint32_t> capabilities;
  bool open_cache = false; ///< what its cache holds is said when a pipeline is made
};

/// `code` is a module of any content; what cannot be read counts as nothing.
ModuleNeeds module_needs(std::span<const uint32_t> code);

} // namespace cortiq::runtime::vulkan
