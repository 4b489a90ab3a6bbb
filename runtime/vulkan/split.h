#pragma once

// One model on several devices: each has a run of its steps, with their weights and caches; between two of them the
// host carries over the rows that the later ones read.

#include <memory>
#include <vector>

#include "runtime/vulkan/model.h"
#include "runtime/vulkan/session.h"

namespace cortiq::runtime::vulkan {

/// Where to cut `program` for devices with so many free bytes each: by weights, between steps that nothing holds
/// together.
StatusOr<std::vector<StepRange>> split_steps(const LoadedArtifact& artifact, const artifact::GpuProgram& program,
                                             std::span<const uint64_t> free_bytes);

class SplitModel final : public GpuModel, public std::enable_shared_from_this<SplitModel> {
public:
  static StatusOr<std::shared_ptr<const GpuModel>> load(const LoadedArtifact& artifact,
                                                        const artifact::GpuProgram& program,
                                                        std::vector<std::shared_ptr<Device>> devices,
                                                        const GpuOptions& options);

  StatusOr<std::unique_ptr<GpuSession>> session(uint64_t positions, bool profile) const override;
  const GpuInfo& device() const override { return info_; }
  KvType kv_type() const override { return parts_.front()->kv_type(); }
  uint64_t device_bytes() const override;
  std::string fallbacks() const override;
  std::string refusals() const override;
  std::vector<GpuPipeline> pipelines() const override;
  bool lost() const override;

private:
  std::vector<std::shared_ptr<const VulkanModel>> parts_;
  GpuInfo info_;
};

} // namespace cortiq::runtime::vulkan
