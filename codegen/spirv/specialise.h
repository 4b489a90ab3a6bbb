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
  bool open = false; ///< stays one, to be given again when a pipeline is made; `value` is its default then
};

/// True when the project has a template of this name.
bool has_shader_template(std::string_view name);
/// True when it has one with all these constants.
bool shader_takes(std::string_view name, std::span<const SpecValue> values);
/// The template that does the work of `name` with kSpecSubgroups 0: for most the same one.
std::string_view plain_shader(std::string_view name);
/// Whether a module's subgroups exchange values; if not, it asks for no such capability either.
bool exchanges_in_subgroups(std::span<const uint32_t> words);

/// The module of template `name` with these constants, optimised; others are fixed at their defaults. The same
/// arguments give the same words. Fails for unknown names, for constants that the template does not have and when
/// SPIRV-Tools refuses.
StatusOr<std::vector<uint32_t>> specialise_shader(std::string_view name, std::span<const SpecValue> values);

} // namespace cortiq::codegen
