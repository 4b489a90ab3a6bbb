#pragma once

// Where the time of steps goes: by call, by stage and between them.
//
// A step's wall clock is cut into stages, end to end. In a stage, each worker notes how long its items took; what of
// workers x wall is left is waiting: for a barrier, for the slowest item, for work to be handed out. While a stage of
// one item runs, all other workers wait; that share is kept apart, because a faster barrier would not shorten it.

#include <cstdint>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

class Profiler {
public:
  /// One block of a call's items on one worker.
  struct Event {
    const Call* call;
    uint64_t start, end; ///< nanoseconds of now()
    uint32_t worker;
  };
  struct CallTimes {
    const Call* call;
    uint64_t steps;
    uint64_t busy; ///< nanoseconds of its items, added over workers
    uint64_t wall; ///< its share of its stage's wall clock, by busy time
    CallWork work; ///< over all steps
  };
  /// Nanoseconds.
  struct Totals {
    uint64_t steps = 0;
    uint64_t wall = 0;                           ///< of steps, begin to end
    uint64_t setup = 0;                          ///< of it before the first stage
    uint64_t parallel = 0;                       ///< of it in stages that workers share
    uint64_t serial = 0;                         ///< of it in stages that one worker runs alone
    uint64_t busy_parallel = 0, busy_serial = 0; ///< in calls of such stages, added over workers
  };

  Profiler(const ResolvedProgram& program, unsigned workers);

  static uint64_t now();

  /// Forgets everything; the next `traced_steps` steps keep their events.
  void reset(uint64_t traced_steps);

  // Called by the executor. A stage is closed by one worker, before the next stage is opened.
  void begin_step() { last_ = begun_ = now(); }
  void begin_stages();
  void add_call(const Call& call, const StepContext& context, const StepShape& shape);
  void record(unsigned worker, const Call& call, uint64_t start, uint64_t end) {
    Lane& lane = lanes_[worker];
    lane.busy[call.number] += end - start;
    if (tracing_)
      lane.events.push_back({&call, start, end, worker});
  }
  void close_stage(uint64_t stage, bool parallel);
  void end_step();

  // Between steps.
  std::vector<CallTimes> calls() const;
  Totals totals() const;
  std::vector<Event> events() const;

private:
  struct alignas(64) Lane {
    std::vector<uint64_t> busy; ///< by call
    std::vector<Event> events;
  };
  struct StageTimes {
    uint64_t parallel = 0, serial = 0;
  };

  const ResolvedProgram& program_;
  std::vector<Lane> lanes_;
  std::vector<StageTimes> stages_;
  std::vector<uint64_t> steps_; ///< by call
  std::vector<CallWork> work_;
  uint64_t begun_ = 0, last_ = 0;
  uint64_t traced_steps_ = 0;
  bool tracing_ = false;
  uint64_t step_count_ = 0, wall_ = 0, setup_ = 0;
};

} // namespace cortiq::runtime
