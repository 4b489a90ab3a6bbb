#include "runtime/vulkan/pipeline_cache.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/vulkan/kept_pipelines.h"

namespace cortiq::runtime::vulkan {
namespace {

std::string folder() {
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set == '/')
    return std::string(set) + "/cortiq";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/cortiq";
  return {};
}

std::string file_name(const VkPhysicalDeviceProperties& p) {
  std::string name = "vulkan-";
  char text[32];
  for (const uint32_t word : {p.vendorID, p.deviceID, p.driverVersion}) {
    std::snprintf(text, sizeof(text), "%08x-", word);
    name += text;
  }
  for (const uint8_t byte : p.pipelineCacheUUID) {
    std::snprintf(text, sizeof(text), "%02x", byte);
    name += text;
  }
  return name + ".bin";
}

} // namespace

PipelineCache::PipelineCache(std::shared_ptr<Device> device) : device_(std::move(device)) {
  if (const std::string where = folder(); !where.empty())
    path_ = where + "/" + file_name(device_->properties());
  const std::vector<uint8_t> bytes = path_.empty() ? std::vector<uint8_t>() : read_kept_pipelines(path_);
  // The driver holds the header against itself and starts empty when it does not fit.
  VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                 .initialDataSize = bytes.size(),
                                 .pInitialData = bytes.data()};
  if (device_->call().vkCreatePipelineCache(device_->handle(), &info, nullptr, &cache_) == VK_SUCCESS) {
    known_bytes_ = bytes.size();
    return;
  }
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  if (device_->call().vkCreatePipelineCache(device_->handle(), &info, nullptr, &cache_) != VK_SUCCESS)
    cache_ = VK_NULL_HANDLE;
}

PipelineCache::~PipelineCache() {
  if (cache_)
    device_->call().vkDestroyPipelineCache(device_->handle(), cache_, nullptr);
}

void PipelineCache::keep() const {
  constexpr size_t kHeaderBytes = 32; // a driver that keeps nothing gives that only
  size_t size = 0;
  if (!cache_ || path_.empty() ||
      device_->call().vkGetPipelineCacheData(device_->handle(), cache_, &size, nullptr) != VK_SUCCESS ||
      size <= kHeaderBytes || size == known_bytes_ || size > kMostKeptBytes)
    return;
  std::vector<uint8_t> bytes(size);
  if (device_->call().vkGetPipelineCacheData(device_->handle(), cache_, &size, bytes.data()) != VK_SUCCESS)
    return;
  bytes.resize(size);
  // A run goes without it as well: nothing is said where it cannot be kept.
  (void)write_kept_pipelines(path_, bytes);
}

} // namespace cortiq::runtime::vulkan
