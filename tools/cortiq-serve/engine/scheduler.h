#pragma once

// Requests, those that wait and those that are answered.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "formats/status.h"
#include "runtime/executor/kv_type.h"
#include "runtime/memory/placement.h"
#include "runtime/text/text_section.h"
#include "tools/cortiq-serve/engine/batch_loop.h"
#include "tools/cortiq-serve/engine/fair_queue.h"

namespace cortiq::serve {

struct SchedulerOptions {
  uint64_t sessions = 16;   ///< conversations at a time
  unsigned threads = 0;     ///< 0: what affinity, control group and cores allow
  uint64_t max_context = 0; ///< tokens a conversation; 0: what the artifact was compiled for
  uint64_t queue = 64;      ///< requests that may wait
  uint64_t cache_bytes = 0; ///< see runtime::BatchOptions
  std::optional<runtime::KvType> kv;
  runtime::Placement placement;                 ///< of weights, caches and workers
  std::shared_ptr<const runtime::GpuModel> gpu; ///< null: the CPU runs all
  bool cpu_fallback = false;                    ///< sessions go on there when the GPU fails
};

/// Counters since the start, and the present.
struct SchedulerState {
  uint64_t accepted = 0, refused = 0, finished = 0, cancelled = 0, failed = 0;
  uint64_t prompt_tokens = 0, kept_tokens = 0, generated_tokens = 0;
  uint64_t waiting = 0, running = 0, sessions = 0;
  double first_token_seconds = 0; ///< sum over the finished, from their arrival
  bool gpu_lost = false;          ///< the GPU failed for good
  bool serving = true;            ///< false: sessions need the GPU that was lost
  BatchCounts batch;
  runtime::BatchCacheState cache;
};

/// Computes the answers to all requests together, as many as there are sessions for; others wait, and clients take
/// turns. A request's tokens are those of a session alone. Thread-safe.
class Scheduler {
public:
  static StatusOr<std::unique_ptr<Scheduler>> create(std::shared_ptr<const runtime::Model> model,
                                                     std::shared_ptr<const runtime::text::TextModel> text,
                                                     const SchedulerOptions& options);
  /// Ends what runs.
  ~Scheduler();

  /// Takes a request on. Null when too many wait already, or after drain().
  std::shared_ptr<Job> submit(Request request, Job::Clock::time_point deadline);
  /// The same for several of one client (the choices of a question: where their prompts are equal they share it); all
  /// are taken on, or none: then it is empty.
  std::vector<std::shared_ptr<Job>> submit_all(std::vector<Request> requests, Job::Clock::time_point deadline);
  /// Takes on nothing more, and waits until what was taken on is done, but not beyond `until`: then it is cancelled.
  void drain(Job::Clock::time_point until);
  /// After drain(): nothing will be taken on any more.
  bool draining() const;

  SchedulerState state() const;
  uint64_t max_context() const { return loop_.engine().max_context(); }

private:
  Scheduler(uint64_t token_count, std::shared_ptr<const runtime::text::TextModel> text,
            std::unique_ptr<runtime::BatchEngine> engine, const SchedulerOptions& options);
  void work();
  void drop_cancelled();
  void settle(std::vector<BatchLoop::Ended>& ended);

  const uint64_t queue_limit_;
  const std::shared_ptr<const runtime::GpuModel> gpu_;
  const bool cpu_fallback_;
  BatchLoop loop_; ///< the worker's

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  FairQueue queue_;
  std::vector<std::shared_ptr<Job>> running_; ///< what the loop has
  bool draining_ = false, ending_ = false;
  SchedulerState state_;
  std::thread worker_;
};

} // namespace cortiq::serve
