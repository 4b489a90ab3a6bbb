#pragma once

// The shader templates that were compiled with the project.

#include <cstdint>
#include <span>
#include <string_view>

namespace cortiq::shaders {

/// A SPIR-V module whose specialisation constants are open.
struct Template {
  std::string_view name; ///< "matmul_q8_0", "rms_norm": the operation and, for matrices, the codec
  const uint32_t* begin;
  const uint32_t* end;

  std::span<const uint32_t> words() const { return {begin, end}; }
};

/// All of them, operation by operation.
std::span<const Template> template_table();

} // namespace cortiq::shaders
