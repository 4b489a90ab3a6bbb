#pragma once

// Programs on a GPU, through Vulkan. The loader of Vulkan is opened when the first function here is called, never
// linked; a build without Vulkan's headers has the same functions, which say so.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/status.h"
#include "runtime/executor/program.h"
#include "runtime/top_logits.h"
#include "runtime/vulkan/gpu_room.h"

namespace cortiq::runtime {

struct LoadedArtifact;
struct Profile;

/// A device, for people.
struct GpuInfo {
  std::string name;     ///< "NVIDIA H200"
  std::string driver;   ///< "NVIDIA 580.159.04"
  std::string kind;     ///< "discrete", "integrated", "virtual", "cpu" or "other"
  uint64_t memory = 0;  ///< bytes of its largest heap of its own
  std::string unusable; ///< why it cannot be used; empty = it can
};

/// The devices, in the order of their numbers; fails when there is no Vulkan.
StatusOr<std::vector<GpuInfo>> list_gpus();

struct GpuOptions {
  std::vector<uint32_t> devices = {0};     ///< numbers; layers are split among several
  std::optional<KvType> kv = std::nullopt; ///< of caches; none = the artifact's
  GpuRoom room = {};
  bool tell_pipelines = false; ///< keep what drivers say of pipelines, for GpuModel::pipelines()
  /// Called while weights go to the device, from 0 to the sum of bytes.
  std::function<void(uint64_t done, uint64_t total)> progress = nullptr;
};

/// What a driver made of a shader module.
struct GpuPipeline {
  std::string module; ///< its name in the artifact
  double seconds = 0; ///< that the driver took
  /// What the driver counts, by its own names ("Register Count"); empty where it tells nothing.
  std::vector<std::pair<std::string, double>> statistics;
};

/// What a session on the GPU did.
struct GpuCounts {
  uint64_t steps = 0, dispatches = 0, barriers = 0; ///< steps of the session, of all of them
  uint64_t cpu_stages = 0;                          ///< run on the CPU in between
  uint64_t matrices = 0;                            ///< dispatches on cooperative matrices
};

/// A session's memory on the device and its recorded commands.
class GpuSession {
public:
  virtual ~GpuSession() = default;

  /// Runs stages [first, first + count) of the program on the CPU, in the arena of `context`.
  using RunStages = std::function<void(const StepContext& context, uint32_t first, uint32_t count)>;

  /// What the host wants of a step's head tokens.
  enum class Want { kLogits, kIds, kTop };
  /// Runs a step as Executor::step() does. Logits then stand in the host's arena, in `logits`; ids in picked(); the
  /// largest logits of a single row in top().
  virtual Status step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count, Want want,
                      const RunStages& run_stages) = 0;
  /// Brings recurrent states that the device has to `states`, all of the program's, if they are those behind
  /// `position`; does nothing where they are the same, or where the host went back.
  virtual Status bring_states(std::span<float* const> states, uint64_t position) = 0;
  /// Whether a step can give ids.
  virtual bool can_pick() const = 0;
  virtual uint32_t picked(uint64_t head) const = 0;
  virtual bool can_top() const = 0;
  virtual void ask_top(const TopAsk& ask) = 0;
  /// Valid until the next step.
  virtual TopLogits top() const = 0;
  /// Brings row `row` of the latest step's logits to the host's arena.
  virtual Status fetch_row(uint8_t* arena, uint64_t row) = 0;
  /// Whether the latest step failed because of the device, not of what it was asked.
  virtual bool failed() const = 0;
  /// The layer, plus one, of which the latest step had a key or value that its cache cannot hold; 0 = none.
  virtual uint32_t overflowed_layer() const = 0;
  /// Lines for people: what was refused.
  virtual std::string report() const = 0;
  /// With a profile: adds what steps took on the device.
  virtual void add_profile(Profile& profile) const = 0;
  virtual void reset_profile() = 0;
  virtual GpuCounts counts() const = 0;
  virtual uint64_t device_bytes() const = 0;
};

/// An artifact's weights and shaders on a device. Shared by its sessions.
class GpuModel {
public:
  virtual ~GpuModel() = default;
  /// Caches hold `positions` tokens. With `profile` the times of steps are kept.
  virtual StatusOr<std::unique_ptr<GpuSession>> session(uint64_t positions, bool profile) const = 0;
  virtual const GpuInfo& device() const = 0;
  /// The type of its caches.
  virtual KvType kv_type() const = 0;
  virtual uint64_t device_bytes() const = 0;
  /// Stages that the CPU runs, and why, one line each; empty = none.
  virtual std::string fallbacks() const = 0;
  /// What the device or its driver refused of the program so far, one line each; empty = nothing.
  virtual std::string refusals() const = 0;
  /// Those made so far, in the order in which they were; empty without GpuOptions::tell_pipelines.
  virtual std::vector<GpuPipeline> pipelines() const = 0;
  /// The device was lost, or did not answer any more: sessions on it fail.
  virtual bool lost() const = 0;
};

/// Memory that this process has on devices.
struct DeviceMemory {
  uint64_t allocations = 0, bytes = 0;
};
DeviceMemory device_memory();

/// Puts the artifact's weights on the device. `artifact` must outlive the model.
StatusOr<std::shared_ptr<const GpuModel>> load_gpu_model(const LoadedArtifact& artifact, const GpuOptions& options);

} // namespace cortiq::runtime
