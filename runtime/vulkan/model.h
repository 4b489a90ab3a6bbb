#pragma once

// An artifact on a device: weights in few large buffers, shaders as pipelines.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "runtime/loader/load.h"
#include "runtime/vulkan/bank.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/pipelines.h"
#include "runtime/vulkan/walk.h"

namespace cortiq::runtime::vulkan {

/// Where a weight lies on the device.
struct WeightPlace {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
};

/// A run of a program's steps, and the slots that others leave for it or that it leaves for others.
struct StepRange {
  uint32_t first = 0, end = 0;
  std::vector<uint32_t> imports = {}, exports = {};
};

class VulkanModel final : public GpuModel, public std::enable_shared_from_this<VulkanModel> {
public:
  /// Puts steps of a program that was checked on a device.
  static StatusOr<std::shared_ptr<const VulkanModel>> make(const LoadedArtifact& artifact,
                                                           const artifact::GpuProgram& program,
                                                           std::shared_ptr<Device> device, StepRange range,
                                                           const GpuOptions& options);

  StatusOr<std::unique_ptr<GpuSession>> session(uint64_t positions, bool profile) const override;
  const GpuInfo& device() const override { return device_->info(); }
  KvType kv_type() const override { return kv_; }
  uint64_t device_bytes() const override { return device_bytes_; }
  std::string fallbacks() const override;
  std::string refusals() const override;
  std::vector<GpuPipeline> pipelines() const override { return pipelines_->told(); }
  bool lost() const override { return device_->lost(); }

  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const LoadedArtifact& artifact() const { return artifact_; }
  const artifact::GpuProgram& program() const { return program_; }
  const Buffer& vectors() const { return vectors_; }
  /// All vectors that are not mixed at run time, and the bits of masks behind them.
  Status write_vectors(Uploader& uploader, const Buffer& to) const;
  /// Where, in words of the vectors, the bits of mask `mask` begin; those of none for UINT32_MAX.
  uint32_t mask_start(uint32_t mask) const;
  /// Of a weight, or a slice (matrices()).
  const WeightPlace& weight(uint32_t number) const { return weights_.at(number); }
  VkDescriptorSetLayout set_layout() const { return pipelines_->set_layout(); }
  VkPipelineLayout pipeline_layout() const { return pipelines_->layout(); }
  /// Null when it is refused; never for modules that what is below promises.
  VkPipeline pipeline(uint32_t module) const { return pipelines_->get(module); }
  /// The shader of a dispatch, of those for an expert bank the one that the device's bank needs.
  uint32_t module_of(const artifact::GpuDispatch& dispatch) const;
  /// Null when none of its experts lie in one.
  Bank* bank() const { return bank_.get(); }
  VkDescriptorSetLayout bank_set_layout() const { return pipelines_->bank_set_layout(); }
  VkPipelineLayout bank_layout() const { return pipelines_->bank_layout(); }
  /// Bytes of one position of a layer's cache.
  uint64_t position_bytes(uint32_t layer) const;

  const StepRange& range() const { return range_; }
  /// Whether the CPU runs step `index` of the program: it has no form on the GPU, or the device refused that.
  bool on_cpu(uint32_t index) const;
  struct PlannedStep {
    const artifact::GpuStep* step;
    bool cpu;
  };
  /// What stands for the steps of this range when there is one token: those of `list` (the program's `single` or `far`)
  /// unit by unit where all of a unit run, otherwise the program's own. Their shaders are made when first asked for.
  std::vector<PlannedStep> one_token(const Steps* list) const;
  /// Whether the choice of ids runs as it stands.
  bool picks_run() const;
  bool top_runs() const;
  bool finish_runs() const;
  /// Whether steps of prompts run on 16-bit matrices: all or none of them do.
  bool half_runs() const;
  /// What stands at kBindWeight: a weight, or a slice of one; kNoIndex, or two in a row for a pair.
  struct Matrices {
    uint32_t first, second;
  };
  Matrices matrices(const artifact::GpuDispatch& d) const;
  /// The weight that is there as a whole or in part; its rows that are.
  const WeightRef& matrix(uint32_t number, uint64_t& rows) const;
  /// Whether the device binds less than the dispatch's matrix, so that the dispatches of its parts run in its place.
  bool in_parts(const artifact::GpuDispatch& d) const;
  /// Calls `use` with the dispatch, or those that run in its place.
  template <class Use>
  void for_each_part(const artifact::GpuDispatch& d, Use use) const {
    if (!in_parts(d)) {
      use(d);
      return;
    }
    for (const artifact::GpuDispatch* part : *d.parts())
      use(*part);
  }
  /// The same of all of a step.
  template <class Use>
  void for_each_part(const artifact::GpuStep& step, Use use) const {
    vulkan::for_each_dispatch(step, [&](const artifact::GpuDispatch& d) { for_each_part(d, use); });
  }
  /// Calls `use` with every dispatch that may run.
  template <class Use>
  void for_each_dispatch(Use use) const {
    const auto& steps = *program_.steps();
    for (uint32_t s = range_.first; s < range_.end; ++s)
      if (!on_cpu(s))
        for_each_part(*steps[s], use);
    for (const Steps* list : {program_.single(), program_.far()})
      vulkan::for_each_dispatch(list, [&](const artifact::GpuStep& step, const artifact::GpuDispatch& d) {
        if (unit_fits(step.unit()))
          for_each_part(d, use);
      });
    for (const Steps* list : {picks_fit_ ? program_.picks() : nullptr,
                              range_.end == steps.size() ? program_.top() : nullptr, program_.finish()})
      vulkan::for_each_dispatch(
          list, [&](const artifact::GpuStep&, const artifact::GpuDispatch& d) { for_each_part(d, use); });
  }

private:
  VulkanModel(const LoadedArtifact& artifact, const artifact::GpuProgram& program, std::shared_ptr<Device> device,
              KvType kv)
      : artifact_(artifact), program_(program), device_(std::move(device)), kv_(kv) {}
  Status make_bank(const GpuOptions& options);
  Status choose_steps();
  /// Why the device cannot run it, leaving aside its shader; empty = it can.
  std::string unbindable(const artifact::GpuDispatch& dispatch) const;
  /// Bytes of a weight, of all that are stacked on it, or of a slice.
  uint64_t bound_bytes(uint32_t number) const;
  Status put_matrix(Uploader& uploader, const Buffer& block, uint64_t offset, uint32_t number) const;
  /// Whether the device binds a dispatch's matrices, or their parts.
  bool fits(const artifact::GpuDispatch& d) const { return unbindable(d).empty() || in_parts(d); }
  bool all_pipelines(const artifact::GpuStep& step) const;
  bool all_pipelines(const Steps* steps) const;
  void choose_units();
  bool unit_fits(uint32_t unit) const {
    const auto found = unit_fits_.find(unit);
    return found != unit_fits_.end() && found->second;
  }
  /// Whether the steps of `list` serve for the unit.
  bool unit_runs(const Steps* list, uint32_t unit) const;
  Status put_weights(const GpuOptions& options);

  const LoadedArtifact& artifact_;
  const artifact::GpuProgram& program_;
  std::shared_ptr<Device> device_;
  const KvType kv_;
  std::unique_ptr<Pipelines> pipelines_;
  StepRange range_;
  std::unique_ptr<Bank> bank_;
  std::string bank_refusal_;           ///< why there is none
  std::vector<std::string> refused_;   ///< why, a step of the program; empty = it runs
  std::map<uint32_t, bool> unit_fits_; ///< whether what one token has of its own can be bound, a unit
  bool picks_fit_ = false;
  mutable std::once_flag half_once_;
  mutable bool half_runs_ = false;
  std::vector<Buffer> blocks_;
  Buffer vectors_;
  std::map<uint32_t, WeightPlace> weights_;
  std::map<uint32_t, const artifact::GpuStack*> stacks_; ///< by the first weight
  uint64_t device_bytes_ = 0;
};

/// Holds a program for the GPU against the artifact's tables.
Status check_gpu_program(const LoadedArtifact& artifact, const artifact::GpuProgram& program);

} // namespace cortiq::runtime::vulkan
