#pragma once

// Walks a resolved program with a persistent pool of workers. It may serve several sessions of the program, one at a
// time.
//
// A step is one parallel region: all workers go through the stages together. Each worker has its share of a stage's
// items, taken in blocks from a cursor of its own; who is done with the own share takes from the others', so that a
// worker whose core was taken away holds nobody up unless it holds a block. The barrier counts finished items, not
// workers. Who finishes the last item runs the stages that follow while they have a single item or are brief (small
// operations between matrix work cost no barrier of their own), then opens the next stage. Waiting is spinning at first
// and parking in the kernel when it is long; who spins asks memory for the weights that its next share begins with.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/executor/profiler.h"
#include "runtime/executor/program.h"
#include "runtime/executor/weights_ahead.h"
#include "runtime/session/reserved_memory.h"

namespace cortiq::runtime {

class Executor {
public:
  /// `program` must outlive the executor. Starts threads - 1 threads; fewer when the system refuses one.
  /// On machines of several memory nodes they are bound as `placement` says; the caller's thread is not.
  Executor(const ResolvedProgram& program, unsigned threads, bool profile, const Placement& placement = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  unsigned threads() const { return static_cast<unsigned>(others_.size()) + 1; }

  /// Makes the memory that the items of a call share, as address space, for a cache of `positions`. Without it calls
  /// get none. In a batch of several sequences the first `sequences` segments get it. False when the system refuses
  /// this or the workers' scratch.
  bool reserve(uint64_t positions, uint64_t sequences = 1);

  /// Runs every stage of the trunk, or of the draft, on `count` tokens; head stages only on tokens
  /// [head_first, head_first + head_count). `segments`, if any, cover the tokens in ascending order; tokens of one
  /// sequence may be in several of them only where the program has no states.
  void step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count,
            std::span<const StepSegment> segments = {});

  /// Where the time goes; null without `profile`.
  Profiler* profiler() const { return profiler_.get(); }
  uint64_t scratch_bytes() const { return scratch_each_ * threads() + shared_.bytes() + counters_.bytes(); }

private:
  struct CallPlan {
    const Call* call;
    StepShape shape;
    uint64_t first_item; ///< in the stage's numbering
    uint32_t segment;    ///< whose context it gets; kWhole: the step's
  };
  static constexpr uint32_t kWhole = UINT32_MAX;
  struct SegmentPlan {
    uint64_t first, count;
    bool operator==(const SegmentPlan&) const = default;
  };
  struct StagePlan {
    uint32_t first_call, calls;
    uint64_t items;
    uint64_t together; ///< items that share what they read, if all calls say the same
    bool by_position;  ///< a call's number of items changes with the position
    bool alone;        ///< one worker runs all of it
    bool in_order;     ///< some call's items have to be begun in their order: they are one share
  };
  /// Where a worker's share of the stage stands: the stage's tag in the upper half, items taken in the lower. Nobody
  /// resets it: under another tag the share is whole.
  struct alignas(64) Cursor {
    std::atomic<uint64_t> taken{0};
  };
  struct Block {
    uint64_t begin, end;
  };

  void plan(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count);
  bool same_segments() const;
  void add_call(const Call& call, const StepShape& shape, SharedNeeds& given, StagePlan& stage);
  void count_items(StagePlan& stage);
  void run();
  void worker(unsigned index);
  /// Waits until the phase is another, and returns it. Meanwhile asks memory for `ahead`.
  uint64_t wait_for_change(uint64_t phase, uint64_t spins, std::span<const uint8_t> ahead);
  void publish(uint64_t phase);
  uint64_t run_serial_stages(uint64_t stage, unsigned worker);
  void run_stages(uint64_t phase, unsigned worker);
  /// Takes and runs blocks of the stage while there are some; true for the worker that finished the stage.
  bool take_items(uint64_t phase, unsigned worker);
  /// Takes a block of `owner`'s share; none when it has no more, or when `phase` is over.
  std::optional<Block> take_block(uint64_t phase, unsigned owner);
  void run_items(const StagePlan& stage, uint64_t begin, uint64_t end, unsigned worker);

  const ResolvedProgram& program_;
  uint64_t spins_;                       ///< pauses before a worker parks
  std::atomic<uint64_t> stage_spins_{0}; ///< the same between stages of the step
  uint64_t scratch_each_ = 0;
  ReservedMemory scratch_;
  const Placement placement_;
  const NumaPlan nodes_;
  unsigned planned_workers_;         ///< when the first of them starts
  ReservedMemory shared_, counters_; ///< calls of one stage side by side, stages one over the other
  uint64_t positions_ = 0;           ///< that shared_ is made for
  uint64_t sharing_ = 0;             ///< segments that get some of it
  std::vector<std::thread> others_;

  const WeightsAhead ahead_;
  std::vector<CallPlan> calls_;
  std::vector<StagePlan> stages_;
  uint64_t planned_overlay_ = 0; ///< its number; 0 = none
  uint64_t planned_count_ = 0, planned_first_ = 0, planned_heads_ = 0, planned_begin_ = 0, planned_position_ = 0,
           planned_prompt_ = 0;
  bool planned_draft_ = false, planned_stream_ = false, planned_missing_ = false;
  std::pair<uint32_t, uint32_t> planned_stages_;
  std::vector<SegmentPlan> planned_segments_;
  std::unique_ptr<Cursor[]> cursors_; ///< by worker
  /// Of each stage, for workers that may be late; with what else they ask.
  std::unique_ptr<std::atomic<uint64_t>[]> items_;
  const StepContext* context_ = nullptr;
  std::span<const StepSegment> segments_; ///< the step's

  // High bits: step number; low bits: the stage being run, or the number of stages when the step is done.
  alignas(64) std::atomic<uint64_t> phase_;
  alignas(64) std::atomic<uint64_t> finished_{0}; ///< items of the stage
  alignas(64) std::atomic<uint32_t> parked_{0};
  std::atomic<bool> stop_{false};

  std::unique_ptr<Profiler> profiler_;
};

} // namespace cortiq::runtime
