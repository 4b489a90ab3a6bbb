#pragma once

// A program's shader modules as pipelines, each made when it is first asked for.

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/gpu.h"
#include "runtime/vulkan/pipeline_cache.h"

namespace cortiq::runtime::vulkan {

/// Thread-safe. Caches are of one type. A module that the device cannot run, or whose driver refuses it, is refused by
/// itself, once and for all.
class Pipelines {
public:
  static StatusOr<std::unique_ptr<Pipelines>> make(std::shared_ptr<Device> device, const artifact::GpuProgram& program,
                                                   KvType kv, bool tell);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  VkPipelineLayout layout() const { return layout_; }
  /// From now on `modules` bind an expert bank of so many segments beside all else.
  Status use_bank(uint32_t segments, const std::vector<uint32_t>& modules);
  VkDescriptorSetLayout bank_set_layout() const { return bank_set_layout_; }
  VkPipelineLayout bank_layout() const { return bank_layout_; }

  /// Null when it is refused.
  VkPipeline get(uint32_t module);
  /// Why module `module`, which get() was asked for, is refused: "shader … was refused by …".
  std::string refusal(uint32_t module) const;
  /// Of all modules refused so far, in the order of their numbers.
  std::vector<std::string> refusals() const;
  /// With `tell` at the beginning: what the driver made of the modules so far, in the order in which it did.
  std::vector<GpuPipeline> told() const;
  /// Writes what drivers made of new modules to the disk.
  void keep();

private:
  struct Slot {
    bool asked = false, bank = false;
    VkPipeline pipeline = VK_NULL_HANDLE;
    std::string refusal;
  };

  Pipelines(std::shared_ptr<Device> device, const artifact::GpuProgram& program, KvType kv, bool tell)
      : device_(device), program_(program), kv_(kv), tell_(tell), cache_(std::move(device)),
        slots_(program.modules()->size()) {}
  Status make_layouts(uint32_t segments, VkDescriptorSetLayout& set_layout, VkPipelineLayout& layout) const;
  StatusOr<VkPipeline> build(const artifact::GpuModule& module, VkPipelineLayout layout);
  std::string missing(std::span<const uint32_t> code) const;
  std::vector<std::pair<std::string, double>> statistics(VkPipeline pipeline) const;

  std::shared_ptr<Device> device_;
  const artifact::GpuProgram& program_;
  const KvType kv_;
  const bool tell_;
  PipelineCache cache_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout bank_set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout bank_layout_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<GpuPipeline> told_;
  bool news_ = false; ///< in the cache, not on the disk
};

} // namespace cortiq::runtime::vulkan
