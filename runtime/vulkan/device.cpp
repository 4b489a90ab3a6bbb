#include "runtime/vulkan/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/artifact/shader_abi.h"
#include "runtime/vulkan/faults.h"

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint32_t kLeastVersion = VK_API_VERSION_1_2;
constexpr uint64_t kStagingBytes = 32 << 20;
constexpr uint32_t kShuffles = 65; // capability GroupNonUniformShuffle of SPIR-V

// Of all devices.
std::atomic<uint64_t> allocations{0}, allocated_bytes{0};

const char* word_of(VkResult result) {
  switch (result) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
    return "out of host memory";
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    return "out of device memory; a shorter --max-context takes less";
  case VK_ERROR_DEVICE_LOST:
    return "the device was lost";
  case VK_ERROR_INITIALIZATION_FAILED:
    return "its driver failed to start";
  case VK_ERROR_INCOMPATIBLE_DRIVER:
    return "no driver of a GPU is installed";
  case VK_ERROR_FEATURE_NOT_PRESENT:
    return "a feature is missing";
  case VK_ERROR_EXTENSION_NOT_PRESENT:
    return "an extension is missing";
  case VK_TIMEOUT:
    return "it did not answer in time and was given up";
  case VK_ERROR_INVALID_SHADER_NV:
    return "the driver refused the shader";
  default:
    return nullptr;
  }
}

const char* kind_of(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return "discrete";
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return "integrated";
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return "virtual";
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return "cpu";
  default:
    return "other";
  }
}

std::vector<VkQueueFamilyProperties> families_of(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> out(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, out.data());
  return out;
}

bool has_extension(VkPhysicalDevice device, const char* name) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list.data());
  return std::ranges::any_of(list, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

// VK_KHR_cooperative_matrix, younger than the headers.
constexpr const char* kCooperativeMatrixName = "VK_KHR_cooperative_matrix";
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE, robustBufferAccess = VK_FALSE;
};
struct CooperativeMatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a = 0, b = 0, c = 0, result = 0; ///< types of components
  VkBool32 saturating = VK_FALSE;
  uint32_t scope = 0;
};

/// Which of kNeedsCooperative and kNeedsHalfMatrices it has the products of.
uint32_t products_of_matrices(VkInstance instance, VkPhysicalDevice device) {
  if (!has_extension(device, kCooperativeMatrixName))
    return 0;
  CooperativeMatrixFeatures features;
  VkPhysicalDeviceFeatures2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features};
  vkGetPhysicalDeviceFeatures2(device, &all);
  VkPhysicalDeviceSubgroupProperties subgroups{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
  vkGetPhysicalDeviceProperties2(device, &properties);
  using List = VkResult (*)(VkPhysicalDevice, uint32_t*, CooperativeMatrixProperties*);
  const auto list =
      reinterpret_cast<List>(vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t count = 0;
  if (!features.cooperativeMatrix || subgroups.subgroupSize != 32 || !list || list(device, &count, nullptr) < 0)
    return 0;
  std::vector<CooperativeMatrixProperties> rows(count);
  if (list(device, &count, rows.data()) < 0)
    return 0;
  constexpr uint32_t kHalf = 0, kFloat = 1, kByte = 3, kInt = 5, kSubgroup = 3; // integers are signed
  const auto has = [&](uint32_t n, uint32_t k, uint32_t factor, uint32_t sum) {
    return std::ranges::any_of(rows, [&](const auto& r) {
      return r.m == 16 && r.n == n && r.k == k && r.a == factor && r.b == factor && r.c == sum && r.result == sum &&
             r.saturating == VK_FALSE && r.scope == kSubgroup;
    });
  };
  return (has(8, 32, kByte, kInt) ? formats::kNeedsCooperative : 0) |
         (has(8, 16, kHalf, kFloat) ? formats::kNeedsHalfMatrices : 0);
}

GpuInfo describe(VkPhysicalDevice device) {
  VkPhysicalDeviceDriverProperties driver{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
  vkGetPhysicalDeviceProperties2(device, &properties);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  GpuInfo info;
  info.name = properties.properties.deviceName;
  info.driver = std::string(driver.driverName) + (driver.driverInfo[0] ? " " : "") + driver.driverInfo;
  info.kind = kind_of(properties.properties.deviceType);
  for (uint32_t h = 0; h < memory.memoryHeapCount; ++h)
    if (memory.memoryHeaps[h].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.memory = std::max<uint64_t>(info.memory, memory.memoryHeaps[h].size);
  const auto families = families_of(device);
  VkPhysicalDeviceVulkan12Features features12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features12};
  if (properties.properties.apiVersion < kLeastVersion) {
    info.unusable = "it has Vulkan " + std::to_string(VK_API_VERSION_MAJOR(properties.properties.apiVersion)) + "." +
                    std::to_string(VK_API_VERSION_MINOR(properties.properties.apiVersion)) + ", 1.2 is needed";
    return info;
  }
  vkGetPhysicalDeviceFeatures2(device, &features);
  if (std::ranges::none_of(families, [](const auto& f) { return (f.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; }))
    info.unusable = "it has no queue for compute";
  else if (!features12.timelineSemaphore)
    info.unusable = "it has no timeline semaphores";
  return info;
}

} // namespace

Status failure(VkResult result, const std::string& what) {
  const char* word = word_of(result);
  return io_error("the GPU: " + what + ": " + (word ? word : "error " + std::to_string(result)));
}

StatusOr<std::shared_ptr<Instance>> Instance::get() {
  static std::mutex mutex;
  static std::weak_ptr<Instance> kept;
  std::lock_guard lock(mutex);
  if (auto instance = kept.lock())
    return instance;
  if (volkInitialize() != VK_SUCCESS)
    return unsupported(
        "there is no Vulkan on this machine (libvulkan.so.1 cannot be opened); install the GPU's driver, or "
        "run with --device none");
  VkApplicationInfo application{
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "cortiq", .apiVersion = VK_API_VERSION_1_3};
  VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  std::shared_ptr<Instance> out(new Instance());
  CORTIQ_VK(vkCreateInstance(&info, nullptr, &out->instance_), "starting Vulkan");
  volkLoadInstanceOnly(out->instance_);
  uint32_t count = 0;
  CORTIQ_VK(vkEnumeratePhysicalDevices(out->instance_, &count, nullptr), "listing devices");
  out->devices_.resize(count);
  CORTIQ_VK(vkEnumeratePhysicalDevices(out->instance_, &count, out->devices_.data()), "listing devices");
  out->devices_.resize(count);
  kept = out;
  return out;
}

Instance::~Instance() {
  if (instance_)
    vkDestroyInstance(instance_, nullptr);
}

StatusOr<std::shared_ptr<Device>> Device::open(uint32_t number) {
  CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<Instance> instance, Instance::get());
  if (number >= instance->devices().size())
    return invalid("there is no GPU number " + std::to_string(number) + "; this machine has " +
                   std::to_string(instance->devices().size()) + " (cortiq-run --device list shows them)");
  std::shared_ptr<Device> out(new Device());
  const VkPhysicalDevice physical = instance->devices()[number];
  out->instance_ = std::move(instance);
  out->physical_ = physical;
  out->info_ = describe(physical);
  if (!out->info_.unusable.empty())
    return unsupported("GPU " + std::to_string(number) + ", " + out->info_.name + ": " + out->info_.unusable);
  CORTIQ_RETURN_IF_ERROR(out->create(physical));
  return out;
}

Status Device::create(VkPhysicalDevice physical) {
  VkPhysicalDeviceMaintenance3Properties maintenance{.sType =
                                                         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &maintenance};
  vkGetPhysicalDeviceProperties2(physical, &properties);
  properties_ = properties.properties;
  largest_allocation_ = maintenance.maxMemoryAllocationSize;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  // A queue for nothing but compute, where there is one, is quicker between submissions.
  const auto families = families_of(physical);
  bool found = false;
  for (const bool only : {true, false})
    for (uint32_t f = 0; f < families.size() && !found; ++f) {
      const VkQueueFlags flags = families[f].queueFlags;
      if ((flags & VK_QUEUE_COMPUTE_BIT) && (!only || !(flags & VK_QUEUE_GRAPHICS_BIT))) {
        family_ = f;
        timestamp_bits_ = families[f].timestampValidBits;
        found = true;
      }
    }
  // What the shaders declare and the device has; pipelines of modules that need more are refused one by one.
  VkPhysicalDeviceVulkan12Features have12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features have11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                          .pNext = &have12};
  const bool dots_in_core = properties_.apiVersion >= VK_API_VERSION_1_3;
  const bool dots_beside = !dots_in_core && has_extension(physical, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  if (dots_in_core || dots_beside)
    have12.pNext = &dots;
  VkPhysicalDeviceFeatures2 have{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &have11};
  vkGetPhysicalDeviceFeatures2(physical, &have);
  dots.pNext = nullptr;
  limit(physical);
  if (Faults::get().has("features")) {
    have12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    have11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    have.features = {};
    dots.shaderIntegerDotProduct = VK_FALSE;
  }
  if (dots.shaderIntegerDotProduct)
    offers_ |= formats::kNeedsIntegerDot;
  if (has_capability(kShuffles))
    offers_ |= formats::kNeedsSubgroups;
  VkPhysicalDeviceVulkan12Features use12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                         .pNext = dots.shaderIntegerDotProduct ? &dots : nullptr,
                                         .storageBuffer8BitAccess = have12.storageBuffer8BitAccess,
                                         .shaderFloat16 = have12.shaderFloat16,
                                         .shaderInt8 = have12.shaderInt8,
                                         .timelineSemaphore = VK_TRUE,
                                         .vulkanMemoryModel = have12.vulkanMemoryModel,
                                         .vulkanMemoryModelDeviceScope = have12.vulkanMemoryModelDeviceScope};
  VkPhysicalDeviceVulkan11Features use11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                         .pNext = &use12,
                                         .storageBuffer16BitAccess = have11.storageBuffer16BitAccess};
  uint32_t matrix_products = !Faults::get().has("features") && have12.vulkanMemoryModel
                                 ? products_of_matrices(instance_->handle(), physical)
                                 : 0;
  if (!have12.shaderInt8)
    matrix_products &= ~formats::kNeedsCooperative;
  if (!have12.shaderFloat16 || Faults::get().number("half") == 0)
    matrix_products &= ~formats::kNeedsHalfMatrices;
  const bool cooperative = matrix_products != 0;
  offers_ |= matrix_products | (Faults::get().number("half") == 1 ? formats::kNeedsHalfMatrices : 0);
  const struct {
    uint32_t capability; // of SPIR-V
    VkBool32 there;
  } optional[] = {{9, have12.shaderFloat16},
                  {11, have.features.shaderInt64},
                  {22, have.features.shaderInt16},
                  {30, have.features.shaderStorageBufferArrayDynamicIndexing},
                  {39, have12.shaderInt8},
                  {4433, have11.storageBuffer16BitAccess},
                  {4448, have12.storageBuffer8BitAccess},
                  {5345, have12.vulkanMemoryModel},
                  {6016, dots.shaderIntegerDotProduct},
                  {6017, dots.shaderIntegerDotProduct},
                  {6018, dots.shaderIntegerDotProduct},
                  {6019, dots.shaderIntegerDotProduct},
                  {6022, cooperative}};
  for (const auto& row : optional)
    if (!row.there)
      lacks_.push_back(row.capability);
  // Offsets in an artifact are checked against their buffers, what shaders compute from ids is held by the device.
  VkPhysicalDeviceFeatures2 use{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &use11};
  use.features.robustBufferAccess = have.features.robustBufferAccess && !Faults::get().number("robust");
  use.features.shaderStorageBufferArrayDynamicIndexing = have.features.shaderStorageBufferArrayDynamicIndexing;
  use.features.shaderInt16 = have.features.shaderInt16;
  use.features.shaderInt64 = have.features.shaderInt64;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                .queueFamilyIndex = family_,
                                .queueCount = 1,
                                .pQueuePriorities = &priority};
  VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                          .pNext = &use,
                          .queueCreateInfoCount = 1,
                          .pQueueCreateInfos = &queue};
  std::vector<const char*> extensions;
  if (dots_beside && dots.shaderIntegerDotProduct)
    extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  CooperativeMatrixFeatures matrices{.cooperativeMatrix = VK_TRUE};
  if (cooperative) {
    extensions.push_back(kCooperativeMatrixName);
    matrices.pNext = use.pNext;
    use.pNext = &matrices;
  }
  tells_memory_ = has_extension(physical, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (tells_memory_)
    extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  if (has_extension(physical, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
    VkPhysicalDeviceFeatures2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &executables};
    vkGetPhysicalDeviceFeatures2(physical, &all);
  }
  tells_pipelines_ = executables.pipelineExecutableInfo;
  if (tells_pipelines_) {
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    executables.pNext = use.pNext;
    use.pNext = &executables;
  }
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  CORTIQ_VK(vkCreateDevice(physical, &info, nullptr, &device_), "opening " + info_.name);
  volkLoadDeviceTable(&table_, device_);
  table_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  return {};
}

Device::~Device() {
  // What does not answer may still write to memory, which ends with the process then.
  if (given_up())
    static_cast<void>(new std::shared_ptr<Instance>(instance_));
  else if (device_)
    table_.vkDestroyDevice(device_, nullptr);
}

/// What it grants a workgroup and a binding, and what of SPIR-V it lacks.
void Device::limit(VkPhysicalDevice physical) {
  const Faults& faults = Faults::get();
  const VkPhysicalDeviceLimits& l = properties_.limits;
  shared_bytes_ = std::min<uint64_t>(l.maxComputeSharedMemorySize, faults.number("shared").value_or(UINT64_MAX));
  invocations_ = std::min<uint64_t>({l.maxComputeWorkGroupInvocations, l.maxComputeWorkGroupSize[0],
                                     faults.number("invocations").value_or(UINT64_MAX)});
  largest_binding_ = std::min<uint64_t>(l.maxStorageBufferRange, faults.number("range").value_or(UINT64_MAX));
  largest_matrix_ = std::min(largest_binding_, faults.number("matrix").value_or(UINT64_MAX));
  VkPhysicalDeviceSubgroupProperties subgroups{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
  vkGetPhysicalDeviceProperties2(physical, &properties);
  if (!(subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) || faults.has("features"))
    subgroups.supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
  constexpr uint32_t kFirst = 61; // GroupNonUniform; the others follow in the order of the bits
  for (uint32_t bit = 0; bit < 8; ++bit)
    if (!(subgroups.supportedOperations >> bit & 1))
      lacks_.push_back(kFirst + bit);
}

bool Device::has_capability(uint32_t capability) const {
  return std::ranges::find(lacks_, capability) == lacks_.end();
}

uint64_t Device::free_memory() const {
  if (const auto set = Faults::get().number("free"))
    return *set;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{.sType =
                                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                           .pNext = tells_memory_ ? &budget : nullptr};
  vkGetPhysicalDeviceMemoryProperties2(physical_, &memory);
  uint64_t best = 0;
  for (uint32_t h = 0; h < memory.memoryProperties.memoryHeapCount; ++h) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[h];
    if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
      continue;
    const uint64_t free = !tells_memory_                               ? heap.size
                          : budget.heapBudget[h] > budget.heapUsage[h] ? budget.heapBudget[h] - budget.heapUsage[h]
                                                                       : 0;
    best = std::max(best, free);
  }
  return best;
}

VkResult Device::note(VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST)
    lost_.store(true, std::memory_order_release);
  return result;
}

VkResult Device::submit(const VkSubmitInfo& info, VkFence fence) {
  if (lost() || Faults::get().strikes("submit"))
    return note(VK_ERROR_DEVICE_LOST);
  std::lock_guard lock(queue_mutex_);
  return note(table_.vkQueueSubmit(queue_, 1, &info, fence));
}

namespace {

/// Asks again and again, up to the end of our patience.
template <class Ask>
VkResult ask_patiently(const Device& device, Ask ask) {
  constexpr uint64_t kOnce = 1'000'000'000;
  VkResult result = VK_TIMEOUT;
  for (uint64_t waited = 0; waited < kPatienceNanoseconds && result == VK_TIMEOUT && !device.lost(); waited += kOnce)
    result = ask(kOnce);
  return device.lost() ? VK_ERROR_DEVICE_LOST : result;
}

} // namespace

VkResult Device::wait(VkSemaphore semaphore, uint64_t value) {
  if (Faults::get().strikes("hang")) {
    lost_ = given_up_ = true;
    return VK_TIMEOUT;
  }
  if (lost() || Faults::get().strikes("wait"))
    return note(VK_ERROR_DEVICE_LOST);
  VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                           .semaphoreCount = 1,
                           .pSemaphores = &semaphore,
                           .pValues = &value};
  const VkResult result =
      ask_patiently(*this, [&](uint64_t once) { return table_.vkWaitSemaphores(device_, &info, once); });
  if (result == VK_TIMEOUT)
    lost_ = given_up_ = true;
  return note(result);
}

VkResult Device::wait(VkFence fence) {
  if (lost() || Faults::get().strikes("wait"))
    return note(VK_ERROR_DEVICE_LOST);
  const VkResult result =
      ask_patiently(*this, [&](uint64_t once) { return table_.vkWaitForFences(device_, 1, &fence, VK_TRUE, once); });
  if (result == VK_TIMEOUT)
    lost_ = given_up_ = true;
  return note(result);
}

void Device::idle() {
  if (Faults::get().strikes("teardown"))
    note(VK_ERROR_DEVICE_LOST);
  if (given_up())
    return;
  // Lost or not: nothing may be destroyed that the queue still uses, and a lost device answers at once.
  std::lock_guard lock(queue_mutex_);
  note(table_.vkQueueWaitIdle(queue_));
}

uint32_t Device::memory_type(uint32_t bits, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags liked) const {
  for (const VkMemoryPropertyFlags flags : {wanted | liked, wanted})
    for (uint32_t t = 0; t < memory_.memoryTypeCount; ++t)
      if ((bits >> t & 1) && (memory_.memoryTypes[t].propertyFlags & flags) == flags)
        return t;
  return UINT32_MAX;
}

StatusOr<Buffer> Buffer::make(std::shared_ptr<Device> device, uint64_t bytes, Place place, const std::string& what) {
  const VolkDeviceTable& call = device->call();
  Buffer out;
  out.device_ = device;
  out.bytes_ = bytes;
  VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                          .size = std::max<uint64_t>(bytes, 16),
                          .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                   VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                          .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
  const std::string task = "making " + std::to_string(bytes) + " bytes of " + what;
  CORTIQ_VK(call.vkCreateBuffer(device->handle(), &info, nullptr, &out.buffer_), task);
  VkMemoryRequirements needs;
  call.vkGetBufferMemoryRequirements(device->handle(), out.buffer_, &needs);
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint32_t type = UINT32_MAX;
  switch (place) {
  case Place::kDevice:
    type = device->memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
    break;
  case Place::kUpload:
    type = device->memory_type(needs.memoryTypeBits, kHost, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    break;
  case Place::kRead:
    type = device->memory_type(needs.memoryTypeBits, kHost, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    break;
  }
  if (type == UINT32_MAX)
    return unsupported("the GPU: " + task + ": it has no such memory");
  VkMemoryAllocateInfo allocate{
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
  if (Faults::get().strikes("allocate"))
    return failure(VK_ERROR_OUT_OF_DEVICE_MEMORY, task);
  CORTIQ_VK(call.vkAllocateMemory(device->handle(), &allocate, nullptr, &out.memory_), task);
  out.taken_ = needs.size;
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(out.taken_, std::memory_order_relaxed);
  CORTIQ_VK(call.vkBindBufferMemory(device->handle(), out.buffer_, out.memory_, 0), task);
  if ((device->memory_flags(type) & kHost) == kHost) {
    void* address = nullptr;
    CORTIQ_VK(call.vkMapMemory(device->handle(), out.memory_, 0, VK_WHOLE_SIZE, 0, &address), task);
    out.mapped_ = static_cast<uint8_t*>(address);
  }
  return out;
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::move(other.device_)), buffer_(std::exchange(other.buffer_, VK_NULL_HANDLE)),
      memory_(std::exchange(other.memory_, VK_NULL_HANDLE)), bytes_(std::exchange(other.bytes_, 0)),
      taken_(std::exchange(other.taken_, 0)), mapped_(std::exchange(other.mapped_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(taken_, other.taken_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (!device_ || device_->given_up())
    return;
  if (buffer_)
    device_->call().vkDestroyBuffer(device_->handle(), buffer_, nullptr);
  if (!memory_)
    return;
  device_->call().vkFreeMemory(device_->handle(), memory_, nullptr);
  allocations.fetch_sub(1, std::memory_order_relaxed);
  allocated_bytes.fetch_sub(taken_, std::memory_order_relaxed);
}

StatusOr<std::unique_ptr<Uploader>> Uploader::make(std::shared_ptr<Device> device) {
  const VolkDeviceTable& call = device->call();
  std::unique_ptr<Uploader> out(new Uploader(device));
  VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                               .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                               .queueFamilyIndex = device->queue_family()};
  CORTIQ_VK(call.vkCreateCommandPool(device->handle(), &pool, nullptr, &out->pool_), "preparing the upload");
  for (Lane& lane : out->lanes_) {
    VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = out->pool_,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = 1};
    CORTIQ_VK(call.vkAllocateCommandBuffers(device->handle(), &allocate, &lane.commands), "preparing the upload");
    VkFenceCreateInfo fence{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    CORTIQ_VK(call.vkCreateFence(device->handle(), &fence, nullptr, &lane.fence), "preparing the upload");
  }
  return out;
}

Uploader::~Uploader() {
  static_cast<void>(finish());
  if (device_->given_up())
    return;
  if (device_->lost())
    device_->idle();
  for (Lane& lane : lanes_)
    if (lane.fence)
      device_->call().vkDestroyFence(device_->handle(), lane.fence, nullptr);
  if (pool_)
    device_->call().vkDestroyCommandPool(device_->handle(), pool_, nullptr);
}

Status Uploader::wait(Lane& lane) {
  if (!lane.busy)
    return {};
  lane.busy = false;
  CORTIQ_VK(device_->wait(lane.fence), "copying weights");
  CORTIQ_VK(device_->call().vkResetFences(device_->handle(), 1, &lane.fence), "copying weights");
  return {};
}

Status Uploader::write(const Buffer& to, uint64_t offset, std::span<const uint8_t> bytes) {
  if (to.mapped()) {
    std::memcpy(to.mapped() + offset, bytes.data(), bytes.size());
    return {};
  }
  const VolkDeviceTable& call = device_->call();
  while (!bytes.empty()) {
    Lane& lane = lanes_[next_++ % 2];
    CORTIQ_RETURN_IF_ERROR(wait(lane));
    if (!lane.staging.handle()) {
      CORTIQ_ASSIGN_OR_RETURN(lane.staging, Buffer::make(device_, kStagingBytes, Place::kUpload, "room for copies"));
    }
    const uint64_t size = std::min<uint64_t>(bytes.size(), kStagingBytes);
    std::memcpy(lane.staging.mapped(), bytes.data(), size);
    VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                   .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    CORTIQ_VK(call.vkBeginCommandBuffer(lane.commands, &begin), "copying weights");
    const VkBufferCopy region{0, offset, size};
    call.vkCmdCopyBuffer(lane.commands, lane.staging.handle(), to.handle(), 1, &region);
    CORTIQ_VK(call.vkEndCommandBuffer(lane.commands), "copying weights");
    VkSubmitInfo submit{
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &lane.commands};
    CORTIQ_VK(device_->submit(submit, lane.fence), "copying weights");
    lane.busy = true;
    offset += size;
    bytes = bytes.subspan(size);
  }
  return {};
}

Status Uploader::finish() {
  Status status;
  for (Lane& lane : lanes_)
    if (Status s = wait(lane); !s.ok())
      status = s;
  return status;
}

} // namespace cortiq::runtime::vulkan

namespace cortiq::runtime {

DeviceMemory device_memory() {
  return {vulkan::allocations.load(std::memory_order_relaxed), vulkan::allocated_bytes.load(std::memory_order_relaxed)};
}

StatusOr<std::vector<GpuInfo>> list_gpus() {
  CORTIQ_ASSIGN_OR_RETURN(const std::shared_ptr<vulkan::Instance> instance, vulkan::Instance::get());
  std::vector<GpuInfo> out;
  for (const VkPhysicalDevice device : instance->devices())
    out.push_back(vulkan::describe(device));
  return out;
}

} // namespace cortiq::runtime
