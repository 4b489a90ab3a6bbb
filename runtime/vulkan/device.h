#pragma once

// One device of Vulkan, and memory on it.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#define VK_NO_PROTOTYPES
#include <volk.h>

#include "formats/status.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::runtime::vulkan {

/// A sentence for a failed call.
Status failure(VkResult result, const std::string& what);

/// An answer that a device owes for so long is given up.
inline constexpr uint64_t kPatienceNanoseconds = 120'000'000'000;

/// Returns from the calling function when a call of Vulkan failed.
#define CORTIQ_VK(call, what)                                                                                          \
  do {                                                                                                                 \
    if (const VkResult vk_result = (call); vk_result != VK_SUCCESS)                                                    \
      return ::cortiq::runtime::vulkan::failure(vk_result, what);                                                      \
  } while (false)

/// The instance of the process, made when first asked for.
class Instance {
public:
  static StatusOr<std::shared_ptr<Instance>> get();
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  std::span<const VkPhysicalDevice> devices() const { return devices_; }
  VkInstance handle() const { return instance_; }

private:
  Instance() = default;
  VkInstance instance_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> devices_;
};

/// A device in use: a queue for compute, and functions of its own.
class Device {
public:
  static StatusOr<std::shared_ptr<Device>> open(uint32_t number);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  VkDevice handle() const { return device_; }
  const VolkDeviceTable& call() const { return table_; }
  uint32_t queue_family() const { return family_; }
  /// Of a timestamp; 0 = the queue has none.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  const VkPhysicalDeviceLimits& limits() const { return properties_.limits; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  const GpuInfo& info() const { return info_; }
  /// GpuNeed bits that it meets.
  uint32_t offers() const { return offers_; }
  uint64_t largest_allocation() const { return largest_allocation_; }
  /// Bytes of its own memory that nobody uses, as the driver estimates them; all of it where it does not.
  uint64_t free_memory() const;
  // Limits, with what a test takes away.
  uint64_t shared_bytes() const { return shared_bytes_; }
  uint64_t invocations() const { return invocations_; }
  uint64_t largest_binding() const { return largest_binding_; }
  uint64_t largest_matrix() const { return largest_matrix_; }
  /// Whether the driver tells what it made of a module.
  bool tells_pipelines() const { return tells_pipelines_; }
  /// Whether modules with this capability of SPIR-V run.
  bool has_capability(uint32_t capability) const;

  // What can lose the device, or find it lost, goes through these; from then on all of them fail at once.
  VkResult submit(const VkSubmitInfo& info, VkFence fence);
  /// Waits for `value`, but not for ever: then the device is given up.
  VkResult wait(VkSemaphore semaphore, uint64_t value);
  VkResult wait(VkFence fence);
  /// Until nothing that was submitted runs any more. A device that was given up is not asked.
  void idle();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// It did not answer: what it may still use is left to the end of the process.
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

  /// The type of `bits` with all of `wanted`, and of `liked` if there is one; UINT32_MAX when there is none.
  uint32_t memory_type(uint32_t bits, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags liked) const;
  VkMemoryPropertyFlags memory_flags(uint32_t type) const { return memory_.memoryTypes[type].propertyFlags; }

private:
  friend class Buffer;
  Device() = default;
  Status create(VkPhysicalDevice physical);
  void limit(VkPhysicalDevice physical);
  VkResult note(VkResult result);

  std::shared_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable table_ = {};
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0, timestamp_bits_ = 0;
  VkPhysicalDeviceProperties properties_ = {};
  VkPhysicalDeviceMemoryProperties memory_ = {};
  uint64_t largest_allocation_ = 0;
  uint64_t shared_bytes_ = 0, invocations_ = 0, largest_binding_ = 0, largest_matrix_ = 0;
  uint32_t offers_ = 0;
  std::vector<uint32_t> lacks_; ///< capabilities of SPIR-V
  bool tells_memory_ = false, tells_pipelines_ = false;
  GpuInfo info_;
  std::mutex queue_mutex_;
  std::atomic<bool> lost_{false}, given_up_{false};
};

enum class Place {
  kDevice, ///< mapped where the device's own memory can be
  kUpload, ///< written by the host, read by the device
  kRead,   ///< written by the device, read by the host
};

/// A buffer with memory of its own.
class Buffer {
public:
  Buffer() = default;
  static StatusOr<Buffer> make(std::shared_ptr<Device> device, uint64_t bytes, Place place, const std::string& what);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  VkBuffer handle() const { return buffer_; }
  uint64_t bytes() const { return bytes_; }
  uint8_t* mapped() const { return mapped_; } ///< null where the host cannot reach it

private:
  std::shared_ptr<Device> device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  uint64_t bytes_ = 0, taken_ = 0; ///< asked for, and what they take on the device
  uint8_t* mapped_ = nullptr;
};

/// Copies to buffers of the device, through a buffer of the host where they are not mapped.
class Uploader {
public:
  static StatusOr<std::unique_ptr<Uploader>> make(std::shared_ptr<Device> device);
  ~Uploader();
  Status write(const Buffer& to, uint64_t offset, std::span<const uint8_t> bytes);
  /// Until here the writes may be on their way.
  Status finish();

private:
  explicit Uploader(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  struct Lane {
    Buffer staging;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool busy = false;
  };
  Status wait(Lane& lane);

  std::shared_ptr<Device> device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  Lane lanes_[2];
  unsigned next_ = 0;
};

} // namespace cortiq::runtime::vulkan
