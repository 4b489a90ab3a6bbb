#include "test/unit/spirv/device.h"

#include <cstdlib>
#include <cstring>

#define VOLK_IMPLEMENTATION
#include <volk.h>

#include "codegen/spirv/specialise.h"
#include "formats/artifact/shader_abi.h"

namespace cortiq::codegen {

struct Device::State {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  uint32_t memory_type = UINT32_MAX;
  uint32_t subgroup = 0;
  bool dot = false, cpu = false;
  std::string name;
  std::map<Words, VkPipeline> pipelines; ///< for the life of the process
};

namespace {

constexpr uint32_t kPushBytes = 64;

bool ok(VkResult result, const char* what, std::string& why) {
  if (result == VK_SUCCESS)
    return true;
  why = std::string(what) + " gives " + std::to_string(result);
  return false;
}

bool choose(Device::State& s, std::string& why) {
  uint32_t count = 0;
  vkEnumeratePhysicalDevices(s.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> all(count);
  vkEnumeratePhysicalDevices(s.instance, &count, all.data());
  if (all.empty()) {
    why = "the Vulkan loader lists no device";
    return false;
  }
  s.physical = all[0];
  VkPhysicalDeviceSubgroupProperties subgroup = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, nullptr, 0, 0, 0, 0};
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
  vkGetPhysicalDeviceProperties2(s.physical, &properties);
  s.subgroup = subgroup.subgroupSize;
  s.cpu = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  s.name = properties.properties.deviceName;
  return true;
}

bool open(Device::State& s, std::string& why) {
  VkPhysicalDeviceVulkan13Features features13 = {};
  features13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  VkPhysicalDeviceVulkan12Features features12 = {};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.pNext = &features13;
  VkPhysicalDeviceFeatures2 features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  vkGetPhysicalDeviceFeatures2(s.physical, &features);
  s.dot = features13.shaderIntegerDotProduct;
  VkPhysicalDeviceVulkan13Features wanted = {};
  wanted.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  wanted.shaderIntegerDotProduct = s.dot;
  VkPhysicalDeviceVulkan12Features wanted12 = {};
  wanted12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  wanted12.pNext = &wanted;
  wanted12.shaderFloat16 = features12.shaderFloat16;
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &wanted12;
  VkPhysicalDeviceFeatures core = {};
  core.shaderStorageBufferArrayDynamicIndexing = features.features.shaderStorageBufferArrayDynamicIndexing;
  info.pEnabledFeatures = &core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  if (!ok(vkCreateDevice(s.physical, &info, nullptr, &s.device), "vkCreateDevice", why))
    return false;
  volkLoadDevice(s.device);
  vkGetDeviceQueue(s.device, 0, 0, &s.queue);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(s.physical, &memory);
  constexpr VkMemoryPropertyFlags kWanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (uint32_t i = 0; i < memory.memoryTypeCount && s.memory_type == UINT32_MAX; ++i)
    if ((memory.memoryTypes[i].propertyFlags & kWanted) == kWanted)
      s.memory_type = i;
  return true;
}

bool make_layouts(Device::State& s, std::string& why) {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (uint32_t b = 0; b < kBindings; ++b)
    bindings.push_back({b, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  bindings.push_back({kBindings, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSegments, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0,
                                         static_cast<uint32_t>(bindings.size()), bindings.data()};
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                  VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, 0};
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBindings + kSegments};
  VkDescriptorPoolCreateInfo descriptors = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, 1, 1, &size};
  VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  if (!ok(vkCreateDescriptorSetLayout(s.device, &set, nullptr, &s.set_layout), "vkCreateDescriptorSetLayout", why))
    return false;
  VkPipelineLayoutCreateInfo layout = {
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &s.set_layout, 1, &range};
  return ok(vkCreatePipelineLayout(s.device, &layout, nullptr, &s.layout), "vkCreatePipelineLayout", why) &&
         ok(vkCreateCommandPool(s.device, &pool, nullptr, &s.pool), "vkCreateCommandPool", why) &&
         ok(vkCreateDescriptorPool(s.device, &descriptors, nullptr, &s.descriptors), "vkCreateDescriptorPool", why) &&
         ok(vkCreateFence(s.device, &fence, nullptr, &s.fence), "vkCreateFence", why);
}

std::unique_ptr<Device::State> make(std::string& why) {
  auto s = std::make_unique<Device::State>();
  if (volkInitialize() != VK_SUCCESS) {
    why = "no Vulkan loader is installed";
    return nullptr;
  }
  VkApplicationInfo app = {
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "spirv_test", 0, nullptr, 0, VK_API_VERSION_1_3};
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &app;
  if (!ok(vkCreateInstance(&info, nullptr, &s->instance), "vkCreateInstance", why))
    return nullptr;
  volkLoadInstance(s->instance);
  if (!choose(*s, why) || !open(*s, why) || !make_layouts(*s, why))
    return nullptr;
  return s;
}

/// A buffer with its memory, freed at the end of the scope.
struct Buffer {
  explicit Buffer(VkDevice d) : device(d) {}
  Buffer(const Buffer&) = delete;
  ~Buffer() {
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory, nullptr);
  }
  VkDevice device;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* mapped = nullptr;
};

bool fill(Device::State& s, Buffer& buffer, const Words& words, std::string& why) {
  const VkDeviceSize bytes = std::max<size_t>(64, 4 * words.size() + 64);
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  if (!ok(vkCreateBuffer(s.device, &info, nullptr, &buffer.buffer), "vkCreateBuffer", why))
    return false;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(s.device, buffer.buffer, &needs);
  VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, s.memory_type};
  if (!ok(vkAllocateMemory(s.device, &memory, nullptr, &buffer.memory), "vkAllocateMemory", why) ||
      !ok(vkBindBufferMemory(s.device, buffer.buffer, buffer.memory, 0), "vkBindBufferMemory", why) ||
      !ok(vkMapMemory(s.device, buffer.memory, 0, VK_WHOLE_SIZE, 0, &buffer.mapped), "vkMapMemory", why))
    return false;
  std::memset(buffer.mapped, 0, bytes);
  std::memcpy(buffer.mapped, words.data(), 4 * words.size());
  return true;
}

bool make_pipeline(Device::State& s, const Words& module, VkPipeline& out, std::string& why) {
  VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, 4 * module.size(),
                                   module.data()};
  VkShaderModule shader;
  if (!ok(vkCreateShaderModule(s.device, &info, nullptr, &shader), "vkCreateShaderModule", why))
    return false;
  VkComputePipelineCreateInfo pipeline = {};
  pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline.stage.module = shader;
  pipeline.stage.pName = "main";
  pipeline.layout = s.layout;
  const VkResult made = vkCreateComputePipelines(s.device, VK_NULL_HANDLE, 1, &pipeline, nullptr, &out);
  vkDestroyShaderModule(s.device, shader, nullptr);
  return ok(made, "vkCreateComputePipelines", why);
}

bool submit(Device::State& s, VkPipeline pipeline, VkDescriptorSet set, const Dispatch& dispatch, std::string& why) {
  VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, s.pool,
                                          VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  VkCommandBuffer commands;
  if (!ok(vkAllocateCommandBuffers(s.device, &allocate, &commands), "vkAllocateCommandBuffers", why))
    return false;
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                    VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  std::vector<uint32_t> push = dispatch.push;
  push.resize(kPushBytes / 4);
  vkBeginCommandBuffer(commands, &begin);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s.layout, 0, 1, &set, 0, nullptr);
  vkCmdPushConstants(commands, s.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, push.data());
  vkCmdDispatch(commands, dispatch.grid.x, dispatch.grid.y, dispatch.grid.z);
  VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                             VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                       nullptr, 0, nullptr);
  vkEndCommandBuffer(commands);
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const bool done = ok(vkQueueSubmit(s.queue, 1, &info, s.fence), "vkQueueSubmit", why) &&
                    ok(vkWaitForFences(s.device, 1, &s.fence, VK_TRUE, 60'000'000'000), "vkWaitForFences", why);
  vkResetFences(s.device, 1, &s.fence);
  vkFreeCommandBuffers(s.device, s.pool, 1, &commands);
  return done;
}

} // namespace

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}

Device* Device::get(std::string& why) {
  static std::string reason;
  static Device* const device = [] {
    std::unique_ptr<State> state = make(reason);
    return state ? new Device(std::move(state)) : nullptr;
  }();
  why = reason;
  return device;
}

bool Device::run(Dispatch& dispatch, std::string& why) {
  State& s = *state_;
  constexpr uint32_t kAll = kBindings + kSegments;
  std::vector<std::unique_ptr<Buffer>> buffers(kAll);
  for (uint32_t b = 0; b < kAll; ++b) {
    if (b >= kBindings && !dispatch.buffers.count(b))
      continue; // binding 0 stands in for segments that nothing reads
    buffers[b] = std::make_unique<Buffer>(s.device);
    if (!fill(s, *buffers[b], dispatch.buffers[b], why))
      return false;
  }
  vkResetDescriptorPool(s.device, s.descriptors, 0);
  VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, s.descriptors, 1,
                                          &s.set_layout};
  VkDescriptorSet set;
  if (!ok(vkAllocateDescriptorSets(s.device, &allocate, &set), "vkAllocateDescriptorSets", why))
    return false;
  VkDescriptorBufferInfo infos[kAll];
  std::vector<VkWriteDescriptorSet> writes;
  for (uint32_t b = 0; b < kAll; ++b) {
    infos[b] = {(buffers[b] ? buffers[b] : buffers[0])->buffer, 0, VK_WHOLE_SIZE};
    const uint32_t binding = b < kBindings ? b : kBindings;
    const uint32_t element = b < kBindings ? 0 : b - kBindings;
    writes.push_back({VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set, binding, element, 1,
                      VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, nullptr, &infos[b], nullptr});
  }
  vkUpdateDescriptorSets(s.device, kAll, writes.data(), 0, nullptr);
  VkPipeline& pipeline = s.pipelines[dispatch.module];
  if (!pipeline && !make_pipeline(s, dispatch.module, pipeline, why))
    return false;
  const bool done = submit(s, pipeline, set, dispatch, why);
  for (uint32_t b = 0; b < kBindings; ++b) {
    Words& words = dispatch.buffers[b];
    std::memcpy(words.data(), buffers[b]->mapped, 4 * words.size());
  }
  return done;
}

const std::string& Device::name() const {
  return state_->name;
}
uint32_t Device::subgroup_size() const {
  return state_->subgroup;
}
bool Device::keeps_subnormals() const {
  return state_->cpu;
}
bool Device::integer_dot() const {
  return state_->dot;
}

void ShaderTest::run(std::string_view name, const std::vector<std::pair<uint32_t, uint32_t>>& constants,
                     Dispatch& dispatch) {
  // As for a device whose subgroups exchange nothing; what other templates do then knows no shares.
  static const bool plain = std::getenv("CORTIQ_TEST_PLAIN") != nullptr;
  const std::string_view used = plain ? plain_shader(name) : name;
  std::vector<SpecValue> values;
  for (const auto& [id, value] : constants)
    if (used == name || id != formats::kSpecShares)
      values.push_back({id, value});
  if (plain)
    values.push_back({formats::kSpecSubgroups, 0});
  static std::map<std::pair<std::string, std::vector<std::pair<uint32_t, uint32_t>>>, Words> made;
  Words& module = made[{std::string(name), constants}];
  if (module.empty()) {
    StatusOr<std::vector<uint32_t>> words = specialise_shader(used, values);
    ASSERT_TRUE(words.ok()) << words.status().message();
    ASSERT_FALSE(plain && exchanges_in_subgroups(*words)) << name;
    module = *std::move(words);
  }
  dispatch.module = module;
  std::string why;
  ASSERT_TRUE(device->run(dispatch, why)) << name << ": " << why;
}

} // namespace cortiq::codegen
