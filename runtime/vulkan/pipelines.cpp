#include "runtime/vulkan/pipelines.h"

#include <algorithm>
#include <chrono>

#include "formats/artifact/shader_abi.h"
#include "formats/quote.h"
#include "runtime/vulkan/faults.h"
#include "runtime/vulkan/module_needs.h"

namespace cortiq::runtime::vulkan {
namespace {

// Names carry all constants behind the template's.
std::string short_name(const artifact::GpuModule& module) {
  const std::string_view name = module.name()->string_view();
  return "shader " + formats::quote(name.substr(0, name.find(' ')));
}

double value_of(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
    return statistic.value.b32 != VK_FALSE;
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
    return static_cast<double>(statistic.value.i64);
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
    return static_cast<double>(statistic.value.u64);
  default:
    return statistic.value.f64;
  }
}

} // namespace

StatusOr<std::unique_ptr<Pipelines>> Pipelines::make(std::shared_ptr<Device> device,
                                                     const artifact::GpuProgram& program, KvType kv, bool tell) {
  std::unique_ptr<Pipelines> out(new Pipelines(std::move(device), program, kv, tell));
  CORTIQ_RETURN_IF_ERROR(out->make_layouts(0, out->set_layout_, out->layout_));
  return out;
}

Pipelines::~Pipelines() {
  if (device_->given_up())
    return;
  keep();
  const VolkDeviceTable& call = device_->call();
  for (const Slot& slot : slots_)
    if (slot.pipeline)
      call.vkDestroyPipeline(device_->handle(), slot.pipeline, nullptr);
  for (const VkPipelineLayout layout : {layout_, bank_layout_})
    if (layout)
      call.vkDestroyPipelineLayout(device_->handle(), layout, nullptr);
  for (const VkDescriptorSetLayout layout : {set_layout_, bank_set_layout_})
    if (layout)
      call.vkDestroyDescriptorSetLayout(device_->handle(), layout, nullptr);
}

Status Pipelines::use_bank(uint32_t segments, const std::vector<uint32_t>& modules) {
  for (const uint32_t module : modules)
    slots_[module].bank = true;
  return make_layouts(segments, bank_set_layout_, bank_layout_);
}

/// With `segments` an array of them stands behind the bindings that all shaders have.
Status Pipelines::make_layouts(uint32_t segments, VkDescriptorSetLayout& set_layout, VkPipelineLayout& made) const {
  VkDescriptorSetLayoutBinding bindings[formats::kShaderBindings + 1];
  const uint32_t count = formats::kShaderBindings + (segments != 0);
  for (uint32_t i = 0; i < count; ++i)
    bindings[i] = {.binding = i,
                   .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                   .descriptorCount = i == formats::kBindBank ? segments : 1,
                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                   .pImmutableSamplers = nullptr};
  VkDescriptorSetLayoutCreateInfo set{
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = count, .pBindings = bindings};
  CORTIQ_VK(device_->call().vkCreateDescriptorSetLayout(device_->handle(), &set, nullptr, &set_layout),
            "describing bindings");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, formats::kPushWords * 4};
  VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                    .setLayoutCount = 1,
                                    .pSetLayouts = &set_layout,
                                    .pushConstantRangeCount = 1,
                                    .pPushConstantRanges = &push};
  CORTIQ_VK(device_->call().vkCreatePipelineLayout(device_->handle(), &layout, nullptr, &made), "describing bindings");
  return {};
}

VkPipeline Pipelines::get(uint32_t module) {
  std::lock_guard lock(mutex_);
  Slot& slot = slots_[module];
  if (!slot.asked) {
    slot.asked = true;
    const artifact::GpuModule& source = *program_.modules()->Get(module);
    const StatusOr<VkPipeline> made = build(source, slot.bank ? bank_layout_ : layout_);
    if (made.ok()) {
      slot.pipeline = *made;
      news_ = true;
    } else {
      slot.refusal = made.status().message();
    }
  }
  return slot.pipeline;
}

std::string Pipelines::refusal(uint32_t module) const {
  std::lock_guard lock(mutex_);
  return slots_[module].refusal;
}

std::vector<std::string> Pipelines::refusals() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const Slot& slot : slots_)
    if (!slot.refusal.empty() && std::ranges::find(out, slot.refusal) == out.end())
      out.push_back(slot.refusal);
  return out;
}

std::vector<GpuPipeline> Pipelines::told() const {
  std::lock_guard lock(mutex_);
  return told_;
}

void Pipelines::keep() {
  std::lock_guard lock(mutex_);
  if (std::exchange(news_, false))
    cache_.keep();
}

/// What the device lacks for the module; empty = nothing that is known of.
std::string Pipelines::missing(std::span<const uint32_t> code) const {
  const ModuleNeeds needs = module_needs(code);
  if (needs.invocations > device_->invocations())
    return "its workgroups have " + std::to_string(needs.invocations) + " invocations, " + device_->info().name +
           " runs at most " + std::to_string(device_->invocations());
  if (needs.shared_bytes > device_->shared_bytes())
    return "it takes " + std::to_string(needs.shared_bytes) + " bytes of shared memory, " + device_->info().name +
           " has " + std::to_string(device_->shared_bytes());
  for (const uint32_t capability : needs.capabilities)
    if (!device_->has_capability(capability))
      return device_->info().name + " lacks capability " + std::to_string(capability) + " of SPIR-V";
  return {};
}

StatusOr<VkPipeline> Pipelines::build(const artifact::GpuModule& module, VkPipelineLayout layout) {
  const VolkDeviceTable& call = device_->call();
  const std::string what = short_name(module);
  const bool plain = module.plain() && module.plain()->size() != 0 && !(device_->offers() & formats::kNeedsSubgroups);
  const flatbuffers::Vector<uint32_t>& words = plain ? *module.plain() : *module.code();
  if (const std::string reason = missing({words.data(), words.size()}); !reason.empty())
    return unsupported(what + ": " + reason);
  const auto refused = [&](VkResult result) {
    return unsupported(what + " was refused by " + device_->info().driver + " (error " + std::to_string(result) + ")");
  };
  if (Faults::get().refuses_module(module.name()->string_view()))
    return refused(VK_ERROR_INVALID_SHADER_NV);
  VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                .codeSize = words.size() * sizeof(uint32_t),
                                .pCode = words.data()};
  VkShaderModule shader = VK_NULL_HANDLE;
  if (const VkResult result = call.vkCreateShaderModule(device_->handle(), &code, nullptr, &shader);
      result != VK_SUCCESS)
    return refused(result);
  static_assert(uint32_t(KvType::kF32) == formats::kCacheF32 && uint32_t(KvType::kF16) == formats::kCacheF16 &&
                uint32_t(KvType::kQ8) == formats::kCacheQ8 && kKvGroup == formats::kCacheGroup);
  const auto kind = static_cast<uint32_t>(kv_);
  const VkSpecializationMapEntry entry{formats::kSpecCache, 0, sizeof(kind)};
  const VkSpecializationInfo constants{1, &entry, sizeof(kind), &kind};
  const bool counted = tell_ && device_->tells_pipelines();
  const VkPipelineCreateFlags flags = counted ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0;
  VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                   .flags = flags,
                                   .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                             .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                             .module = shader,
                                             .pName = "main",
                                             .pSpecializationInfo = &constants},
                                   .layout = layout};
  VkPipeline pipeline = VK_NULL_HANDLE;
  const auto start = std::chrono::steady_clock::now();
  VkResult result = call.vkCreateComputePipelines(device_->handle(), cache_.handle(), 1, &info, nullptr, &pipeline);
  if (result == VK_SUCCESS && Faults::get().number("remake")) {
    call.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
    result = call.vkCreateComputePipelines(device_->handle(), cache_.handle(), 1, &info, nullptr, &pipeline);
  }
  call.vkDestroyShaderModule(device_->handle(), shader, nullptr);
  if (result != VK_SUCCESS)
    return refused(result);
  if (tell_)
    told_.push_back({module.name()->str(),
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                     counted ? statistics(pipeline) : decltype(GpuPipeline::statistics)()});
  return pipeline;
}

/// A module of compute is one executable, unless a driver makes more of it: then a statistic is of its largest.
std::vector<std::pair<std::string, double>> Pipelines::statistics(VkPipeline pipeline) const {
  const VolkDeviceTable& call = device_->call();
  const VkPipelineInfoKHR which{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  uint32_t executables = 0;
  if (call.vkGetPipelineExecutablePropertiesKHR(device_->handle(), &which, &executables, nullptr) != VK_SUCCESS)
    return {};
  std::vector<std::pair<std::string, double>> out;
  for (uint32_t e = 0; e < executables; ++e) {
    const VkPipelineExecutableInfoKHR one{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline, .executableIndex = e};
    uint32_t count = 0;
    if (call.vkGetPipelineExecutableStatisticsKHR(device_->handle(), &one, &count, nullptr) != VK_SUCCESS)
      continue;
    std::vector<VkPipelineExecutableStatisticKHR> list(count,
                                                       {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    if (call.vkGetPipelineExecutableStatisticsKHR(device_->handle(), &one, &count, list.data()) < 0)
      continue;
    list.resize(count);
    for (const VkPipelineExecutableStatisticKHR& s : list) {
      const auto place = std::ranges::find(out, s.name, &std::pair<std::string, double>::first);
      if (place == out.end())
        out.emplace_back(s.name, value_of(s));
      else
        place->second = std::max(place->second, value_of(s));
    }
  }
  return out;
}

} // namespace cortiq::runtime::vulkan
