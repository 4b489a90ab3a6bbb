#pragma once

// A session on a device: work space, caches, and commands recorded once for every number of tokens.

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/vulkan/blend.h"
#include "runtime/vulkan/in_force.h"
#include "runtime/vulkan/model.h"
#include "runtime/vulkan/step_times.h"

namespace cortiq::runtime::vulkan {

class VulkanSession final : public GpuSession {
public:
  static StatusOr<std::unique_ptr<VulkanSession>> make(std::shared_ptr<const VulkanModel> model, uint64_t positions,
                                                       bool profile);
  ~VulkanSession() override;

  Status step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count, Want want,
              const RunStages& run_stages) override;
  bool can_pick() const override { return model_->picks_run(); }
  uint32_t picked(uint64_t head) const override;
  bool can_top() const override { return model_->top_runs(); }
  void ask_top(const TopAsk& ask) override { ask_ = ask; }
  TopLogits top() const override;
  Status fetch_row(uint8_t* arena, uint64_t row) override;
  bool failed() const override { return failed_; }
  uint32_t overflowed_layer() const override { return overflowed_; }
  std::string report() const override;
  void add_profile(Profile& profile) const override { times_.add_to(profile); }
  void reset_profile() override { times_.reset(); }
  Status bring_states(std::span<float* const> states, uint64_t position) override;
  /// Takes what the latest step exported to the session on the next device.
  void carry_to(VulkanSession& next, uint64_t count) const;
  GpuCounts counts() const override { return counts_; }
  uint64_t device_bytes() const override;

private:
  /// Steps of the GPU, or stages of the CPU between them.
  struct Part {
    const artifact::GpuStep* step = nullptr;
    bool cpu = false;
    uint32_t first_stage = 0, stages = 0;
    std::vector<uint32_t> reads, writes; ///< slots that go to the CPU, and come back
  };
  struct Segment {
    VkCommandBuffer commands;
    const Part* then = nullptr; ///< what the CPU runs behind it; null at the end
    const artifact::GpuStep* missing =
        nullptr;         ///< the remapping behind which the CPU runs the experts that are missing
    bool beside = false; ///< needs nothing of the CPU: it runs beside what the CPU does for the one before
  };
  struct Recording {
    std::vector<Segment> segments;
    std::unique_ptr<Timestamps> clock;                   ///< with a profile
    uint64_t dispatches = 0, barriers = 0, matrices = 0; ///< the last: of them on cooperative matrices
    std::vector<const artifact::GpuStep*> remaps;        ///< nobody is missing: what choices count for
  };
  struct Key {
    uint64_t tokens, heads; ///< at most
    Want want;              ///< of the heads
    bool far;               ///< attention cuts its caches
    bool half;              ///< tokens of a prompt, on 16-bit matrices
    InForce now;
    auto operator<=>(const Key&) const = default;
  };
  /// A layer's place in the caches.
  struct Range {
    uint64_t buffer, offset, bytes;
  };
  /// What stands at the end of commands.
  enum class End { kPlain, kSerial };
  /// Tokens of a step, and those of its head.
  struct Tokens {
    uint64_t count, head_first, head_count;
  };

  /// Steps of which the host sets some push constants.
  enum class StepKind { kPlain, kTop, kFinish };

  /// What is bound for a dispatch: weight, its partner, layer, recurrent state, matrices of the bank.
  using SetKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, artifact::BankPart>;
  static bool binds_bank(artifact::BankPart part) {
    return part == artifact::BankPart::GateUp || part == artifact::BankPart::Down;
  }
  SetKey set_key(const artifact::GpuDispatch& d) const {
    const auto [first, second] = model_->matrices(d);
    return {first, second, d.layer(), d.state(), binds_bank(d.bank()) ? d.bank() : artifact::BankPart::None};
  }

  VulkanSession(std::shared_ptr<const VulkanModel> model, bool profile);
  Status reserve(uint64_t positions);
  void plan();
  /// When the first step of one token comes: its shaders are made then.
  void plan_single();
  void plan(const artifact::GpuStep& step, bool cpu, std::vector<Part>& parts) const;
  Status make_sets();
  /// Segments that the products with `part` of the bank's experts read; the first one stands for those that there are
  /// not.
  void bind_bank(VkDescriptorSet set, artifact::BankPart part) const;

  StatusOr<Recording*> recording(uint64_t tokens, uint64_t heads, Want want, bool far, bool half);
  void drop_recordings(bool logits_only);
  /// Binds what a dispatch of this key reads and writes.
  Status write_set(const SetKey& key);
  const WeightPlace* place_of(uint32_t number) const;
  /// Mixes the weights of a blend that came into force.
  Status put_blend(const StepContext& context);
  Status clear_caches();
  /// Adds what the step left of residual rows to the sums that were asked for.
  void add_taps(const StepContext& context) const;
  Status reserve_states();
  /// The states of the host go to the device, unless that left off at this position.
  Status put_states(const StepContext& context);
  Status record_clear();
  Status copy_states(bool to_host);
  StatusOr<VkCommandBuffer> begin();
  Status restart(VkCommandBuffer commands);
  /// Ends commands, behind what is copied when `copied`; the step's number is the last thing that the host sees.
  Status finish(VkCommandBuffer commands, bool copied, End end);
  /// Ends commands, runs them, waits for them and frees them.
  Status run_once(VkCommandBuffer commands);
  void barrier(VkCommandBuffer commands, bool copied_before, bool copies_after) const;
  Status fill_tail(uint64_t first, uint64_t count);
  Status reserve_logits(uint64_t rows);
  /// One of the shaders that a dispatch can be, with its workgroups and the tokens of one.
  struct Form {
    uint32_t module;
    uint64_t groups, chunk;
  };
  Form form_of(const artifact::GpuDispatch& d, uint64_t tokens) const;
  uint32_t time_row(const artifact::GpuStep& step, uint64_t tokens);
  /// Whether a dispatch runs under what is in force in this step.
  bool runs_now(const artifact::GpuDispatch& d) const {
    if (d.on_half() != artifact::GpuHalf::Both && (d.on_half() == artifact::GpuHalf::Only) != half_)
      return false;
    return !now_ || runs(d, *now_);
  }
  Status run_step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count, Want want,
                  const RunStages& run_stages);
  void record_dispatch(VkCommandBuffer commands, const artifact::GpuDispatch& d, uint64_t tokens, Recording& made,
                       StepKind kind);
  void record_step(VkCommandBuffer commands, const artifact::GpuStep& step, uint64_t tokens, Recording& made,
                   StepKind kind);
  void copy_rows(VkCommandBuffer commands, const std::vector<uint32_t>& slots, uint64_t tokens, bool to_host) const;
  void copy_missing(VkCommandBuffer commands, const artifact::GpuBankLayer& layer, uint64_t tokens) const;
  void copy_logits(VkCommandBuffer commands, uint64_t first, uint64_t count) const;

  void fill_step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count);
  /// Behind the last of them the host waits for the step's number, unless they run beside others' work.
  Status submit(std::span<const VkCommandBuffer> commands, bool beside = false);
  Status wait();
  /// Submits a segment, and the one behind it where that runs beside the CPU's work for it; does that work.
  Status run_segment(const Recording& recording, size_t number, const StepContext& context, const Tokens& tokens,
                     VkCommandBuffer tail, const RunStages& run_stages);
  /// The experts that the bank lacks, for all tokens; their sums go to the mirror of the arena.
  void run_missing(const artifact::GpuStep& step, const StepContext& context, const Tokens& tokens,
                   const RunStages& run_stages);
  /// Experts that a token chooses.
  uint64_t chosen(const artifact::GpuBankLayer& layer) const;
  static const artifact::GpuDispatch* bank_dispatch(const artifact::GpuStep& step, artifact::BankPart part);
  Status run_cpu(const Part& part, const StepContext& context, uint64_t count, const RunStages& run_stages);
  void to_cpu(uint32_t slot, uint8_t* arena, uint64_t count) const;
  void from_cpu(uint32_t slot, const uint8_t* arena, uint64_t count) const;

  std::shared_ptr<const VulkanModel> model_;
  std::shared_ptr<Device> device_;
  const artifact::GpuProgram& program_;
  Buffer arena_, step_, result_;
  std::vector<Buffer> caches_;
  Buffer states_, host_states_; ///< of recurrent operations that the device runs
  std::map<uint32_t, Range> state_places_;
  std::optional<uint64_t> states_position_; ///< behind which the device's states are
  bool states_newer_ = false;               ///< than those of the host
  Buffer mirror_;                           ///< of the arena, for stages of the CPU
  Buffer logits_;
  std::vector<Range> layers_;
  std::vector<uint64_t> rope_words_;              ///< where each rotation table stands in the step buffer
  uint64_t serial_word_ = 0;                      ///< of the step buffer; behind it what top_logits is asked for
  uint64_t top_word_ = 0;                         ///< of the results, where its records begin
  std::vector<uint64_t> tap_words_;               ///< the same of each tap's sums
  std::unique_ptr<BlendWeights> blend_;           ///< the latest
  const StepContext* now_ = nullptr;              ///< of the step that is made
  bool half_ = false;                             ///< the same: it takes 16-bit matrices
  uint64_t logits_start_ = 0, logits_stride_ = 0; ///< floats
  std::vector<Part> parts_, single_parts_;        ///< of any number of tokens, of one
  std::vector<Part> far_parts_;                   ///< of one behind many positions
  bool single_planned_ = false;
  VkDescriptorPool sets_pool_ = VK_NULL_HANDLE;
  VkCommandPool commands_pool_ = VK_NULL_HANDLE;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::map<SetKey, VkDescriptorSet> sets_;
  VkDescriptorSet bound_ = VK_NULL_HANDLE;
  std::map<Key, Recording> recordings_;
  VkCommandBuffer tail_ = VK_NULL_HANDLE;  ///< copies the logits of batches
  uint64_t submitted_ = 0;                 ///< value of the semaphore when all is done, and number of the submission
  uint64_t awaited_ = 0;                   ///< the latest submission that tells its number
  uint64_t missing_word_ = 0;              ///< of the results: what bank_remap leaves
  VkCommandBuffer clear_ = VK_NULL_HANDLE; ///< submitted once, in front of the first step
  GpuCounts counts_;
  TopAsk ask_;
  mutable std::vector<float> top_values_;
  mutable std::vector<uint32_t> top_ids_;
  bool failed_ = false;
  uint32_t overflowed_ = 0;
  bool profile_;
  StepTimes times_;
};

} // namespace cortiq::runtime::vulkan
