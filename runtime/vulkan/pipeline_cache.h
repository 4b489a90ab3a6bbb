#pragma once

// What a driver made of shaders, kept between runs: one file a driver and device.

#include <memory>
#include <string>

#include "runtime/vulkan/device.h"

namespace cortiq::runtime::vulkan {

class PipelineCache {
public:
  /// Starts with what was kept, if anything was; an unreadable file is as good as none.
  explicit PipelineCache(std::shared_ptr<Device> device);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return cache_; }
  /// Writes the file anew when there is more in the cache than before: under another name, then renamed.
  void keep() const;

private:
  std::shared_ptr<Device> device_;
  std::string path_; ///< empty = there is no folder for it
  uint64_t known_bytes_ = 0;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
};

} // namespace cortiq::runtime::vulkan
