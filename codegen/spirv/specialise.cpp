#include "codegen/spirv/specialise.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include <spirv-tools/optimizer.hpp>

#include "codegen/spirv/cooperative.h"
#include "shaders/template_table.h"

namespace cortiq::codegen {
namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_2;

const shaders::Template* find_template(std::string_view name) {
  const std::span<const shaders::Template> table = shaders::template_table();
  const auto row = std::find_if(table.begin(), table.end(), [&](const shaders::Template& t) { return t.name == name; });
  return row == table.end() ? nullptr : &*row;
}

/// The ids of a module's specialisation constants: OpDecorate (71) with decoration SpecId (1).
std::vector<uint32_t> spec_ids(std::span<const uint32_t> words) {
  std::vector<uint32_t> ids;
  for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
    if ((words[at] & 0xffff) == 71 && words[at + 2] == 1)
      ids.push_back(words[at + 3]);
  return ids;
}

} // namespace

bool has_shader_template(std::string_view name) {
  return find_template(name) != nullptr;
}

StatusOr<std::vector<uint32_t>> specialise_shader(std::string_view name, std::span<const SpecValue> values) {
  const shaders::Template* shader = find_template(name);
  if (!shader)
    return internal_error("there is no shader template named " + std::string(name));
  const std::vector<uint32_t> known = spec_ids(shader->words());
  std::unordered_map<uint32_t, std::vector<uint32_t>> constants;
  for (const SpecValue& value : values) {
    if (std::find(known.begin(), known.end(), value.id) == known.end())
      return internal_error("shader template " + std::string(name) + " has no specialisation constant " +
                            std::to_string(value.id));
    constants[value.id] = {value.value};
  }
  std::string message;
  spvtools::Optimizer optimizer(kEnvironment);
  optimizer.SetMessageConsumer([&](spv_message_level_t level, const char*, const spv_position_t&, const char* text) {
    if (level <= SPV_MSG_ERROR)
      message = text;
  });
  optimizer.RegisterPass(spvtools::CreateSetSpecConstantDefaultValuePass(constants))
      .RegisterPass(spvtools::CreateFreezeSpecConstantValuePass())
      .RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass())
      .RegisterPerformancePasses();
  spvtools::OptimizerOptions options;
  options.set_run_validator(false);
  std::vector<uint32_t> out;
  if (!optimizer.Run(shader->begin, shader->words().size(), &out, options))
    return internal_error("SPIRV-Tools cannot specialise " + std::string(name) + ": " + message);
  return to_khr_cooperative(std::move(out));
}

} // namespace cortiq::codegen
