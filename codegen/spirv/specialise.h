#pragma once

// Shader templates made into the modules of one model: constants fixed, code that they exclude removed.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/status.h"

namespace cortiq::codegen {

/// The value of a specialisation constant; floats as their bits.
struct SpecValue {
  uint32_t id;
  uint32_t value;
};

/// True when the project has a template of this name.
bool has_shader_template(std::string_view name);

/// The module of template `name` with these constants, optimised; others keep their defaults. The same arguments give
/// the same words. Fails for unknown names, for constants that the template does not have and when SPIRV-Tools refuses.
StatusOr<std::vector<uint32_t>> specialise_shader(std::string_view name, std::span<const SpecValue> values);

} // namespace cortiq::codegen
