#pragma once

// An artifact on a device: weights in few large buffers, shaders as pipelines.

#include <map>
#include <memory>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "runtime/loader/load.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/pipeline_cache.h"

namespace cortiq::runtime::vulkan {

/// Where a weight lies on the device.
struct WeightPlace {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
};

/// Calls `use` with every dispatch of the program.
template <class Use>
void for_each_dispatch(const artifact::GpuProgram& program, Use use) {
  for (const auto* steps : {program.steps(), program.picks(), program.single()})
    for (uint32_t s = 0; steps && s < steps->size(); ++s)
      if (const auto* dispatches = steps->Get(s)->dispatches())
        for (const artifact::GpuDispatch* dispatch : *dispatches)
          use(*dispatch);
}

class VulkanModel final : public GpuModel, public std::enable_shared_from_this<VulkanModel> {
public:
  static StatusOr<std::shared_ptr<const GpuModel>> load(const LoadedArtifact& artifact, const GpuOptions& options);
  ~VulkanModel() override;

  StatusOr<std::unique_ptr<GpuSession>> session(uint64_t positions) const override;
  const GpuInfo& device() const override { return device_->info(); }
  uint64_t device_bytes() const override { return device_bytes_; }
  std::string fallbacks() const override;

  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const LoadedArtifact& artifact() const { return artifact_; }
  const artifact::GpuProgram& program() const { return program_; }
  const Buffer& vectors() const { return vectors_; }
  const WeightPlace& weight(uint32_t index) const { return weights_.at(index); }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  VkPipelineLayout pipeline_layout() const { return pipeline_layout_; }
  VkPipeline pipeline(uint32_t module) const { return pipelines_[module]; }
  /// Bytes of one position of a layer's cache.
  uint64_t position_bytes(uint32_t layer) const;

private:
  VulkanModel(const LoadedArtifact& artifact, const artifact::GpuProgram& program, std::shared_ptr<Device> device)
      : artifact_(artifact), program_(program), device_(std::move(device)) {}
  Status put_weights(const GpuOptions& options);
  Status make_layouts();
  Status make_pipelines();

  const LoadedArtifact& artifact_;
  const artifact::GpuProgram& program_;
  std::shared_ptr<Device> device_;
  std::vector<Buffer> blocks_;
  Buffer vectors_;
  std::map<uint32_t, WeightPlace> weights_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  std::vector<VkPipeline> pipelines_;
  uint64_t device_bytes_ = 0;
};

/// Holds a program for the GPU against the artifact's tables.
Status check_gpu_program(const LoadedArtifact& artifact, const artifact::GpuProgram& program);

} // namespace cortiq::runtime::vulkan
