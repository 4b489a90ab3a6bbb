#include "codegen/spirv/specialise.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

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

// Of the SPIR-V specification.
constexpr size_t kHeaderWords = 5;
constexpr uint32_t kCapability = 17, kConstant = 43, kSpecConstant = 50, kDecorate = 71, kSpecIdDecoration = 1;
constexpr uint32_t kName = 5, kVariable = 59, kWorkgroupMemory = 4;
constexpr uint32_t kFirstExchange = 333, kLastExchange = 366;       // OpGroupNonUniformElect and what follows
constexpr uint32_t kFirstExchangeNeed = 62, kLastExchangeNeed = 68; // GroupNonUniformVote and what follows

/// Calls `use` with each instruction of a module.
template <class Use>
void for_each_instruction(std::span<const uint32_t> words, Use use) {
  for (size_t at = kHeaderWords; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
    use(words[at] & 0xffff, words.subspan(at, std::min<size_t>(words[at] >> 16, words.size() - at)));
}

/// The numbers of a module's specialisation constants, by what they decorate.
std::unordered_map<uint32_t, uint32_t> spec_ids(std::span<const uint32_t> words) {
  std::unordered_map<uint32_t, uint32_t> ids;
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> op) {
    if (opcode == kDecorate && op[2] == kSpecIdDecoration)
      ids[op[1]] = op[3];
  });
  return ids;
}

/// The module with these values, all of it constants but those that stay open.
std::vector<uint32_t> with_constants(std::span<const uint32_t> words, std::span<const SpecValue> values) {
  const std::unordered_map<uint32_t, uint32_t> ids = spec_ids(words);
  std::unordered_map<uint32_t, SpecValue> given;
  for (const SpecValue& value : values)
    given[value.id] = value;
  const auto value_of = [&](uint32_t decorated) -> const SpecValue* {
    const auto id = ids.find(decorated);
    const auto found = id == ids.end() ? given.end() : given.find(id->second);
    return found == given.end() ? nullptr : &found->second;
  };
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> op) {
    const bool spec_id = opcode == kDecorate && op[2] == kSpecIdDecoration;
    const SpecValue* value = spec_id ? value_of(op[1]) : opcode == kSpecConstant ? value_of(op[2]) : nullptr;
    const bool open = value && value->open;
    if (spec_id && !open)
      return;
    const size_t at = out.size();
    out.insert(out.end(), op.begin(), op.end());
    if (opcode != kSpecConstant)
      return;
    if (value)
      out[at + 3] = value->value;
    if (!open)
      out[at] = (op[0] & 0xffff0000u) | kConstant;
  });
  return out;
}

/// Templates ask for whatever their includes might use.
std::vector<uint32_t> without_idle_needs(std::vector<uint32_t> words) {
  if (exchanges_in_subgroups(words))
    return words;
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> op) {
    if (opcode != kCapability || op[1] < kFirstExchangeNeed || op[1] > kLastExchangeNeed)
      out.insert(out.end(), op.begin(), op.end());
  });
  return out;
}

/// Shared memory that nobody uses counts against a device's limit as long as it is declared. SPIRV-Tools keep it where
/// they meet an extension that they do not know.
std::vector<uint32_t> without_idle_memory(std::vector<uint32_t> words) {
  std::unordered_set<uint32_t> idle;
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> op) {
    if (opcode == kVariable && op[3] == kWorkgroupMemory)
      idle.insert(op[2]);
    else if (opcode != kName && opcode != kDecorate)
      for (const uint32_t word : op.subspan(1))
        idle.erase(word);
  });
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> op) {
    const bool names = opcode == kName || opcode == kDecorate;
    if (!(opcode == kVariable && idle.contains(op[2])) && !(names && idle.contains(op[1])))
      out.insert(out.end(), op.begin(), op.end());
  });
  return out;
}

} // namespace

bool has_shader_template(std::string_view name) {
  return find_template(name) != nullptr;
}

bool shader_takes(std::string_view name, std::span<const SpecValue> values) {
  const shaders::Template* shader = find_template(name);
  if (!shader)
    return false;
  const std::unordered_map<uint32_t, uint32_t> ids = spec_ids(shader->words());
  return std::ranges::all_of(values, [&](const SpecValue& value) {
    return std::ranges::any_of(ids, [&](const auto& id) { return id.second == value.id; });
  });
}

std::string_view plain_shader(std::string_view name) {
  return name == "attention" ? "attention_anchored" : name;
}

bool exchanges_in_subgroups(std::span<const uint32_t> words) {
  bool found = false;
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t>) {
    found = found || (opcode >= kFirstExchange && opcode <= kLastExchange);
  });
  return found;
}

StatusOr<std::vector<uint32_t>> specialise_shader(std::string_view name, std::span<const SpecValue> values) {
  const shaders::Template* shader = find_template(name);
  if (!shader)
    return internal_error("there is no shader template named " + std::string(name));
  const bool takes = shader_takes(name, values);
  for (const SpecValue& value : values)
    if (!takes && !shader_takes(name, {&value, 1}))
      return internal_error("shader template " + std::string(name) + " has no specialisation constant " +
                            std::to_string(value.id));
  std::string message;
  spvtools::Optimizer optimizer(kEnvironment);
  optimizer.SetMessageConsumer([&](spv_message_level_t level, const char*, const spv_position_t&, const char* text) {
    if (level <= SPV_MSG_ERROR)
      message = text;
  });
  optimizer.RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass()).RegisterPerformancePasses();
  optimizer.RegisterPass(spvtools::CreateRemoveUnusedInterfaceVariablesPass());
  spvtools::OptimizerOptions options;
  options.set_run_validator(false);
  std::vector<uint32_t> out;
  const std::vector<uint32_t> fixed = with_constants(shader->words(), values);
  if (!optimizer.Run(fixed.data(), fixed.size(), &out, options))
    return internal_error("SPIRV-Tools cannot specialise " + std::string(name) + ": " + message);
  return to_khr_cooperative(without_idle_memory(without_idle_needs(std::move(out))));
}

} // namespace cortiq::codegen
