#pragma once

// Sessions of one model and the requests that wait for them.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "formats/status.h"
#include "runtime/session/session.h"
#include "runtime/text/text_section.h"
#include "tools/cortiq-serve/engine/fair_queue.h"

namespace cortiq::serve {

struct SchedulerOptions {
  uint64_t sessions = 1;    ///< conversations at a time
  unsigned threads = 0;     ///< of all sessions together; 0: what affinity, control group and cores allow
  uint64_t max_context = 0; ///< tokens a session; 0: what the artifact was compiled for
  uint64_t queue = 64;      ///< requests that may wait
  std::optional<runtime::KvType> kv;
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
};

/// Gives waiting requests to free sessions: to the one that holds the longest beginning of the prompt already. A
/// request's tokens are those of a session alone. Thread-safe.
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
  uint64_t max_context() const { return max_context_; }

private:
  struct Worker;

  Scheduler(std::shared_ptr<const runtime::Model> model, std::shared_ptr<const runtime::text::TextModel> text,
            uint64_t queue);
  void work(Worker& worker);
  void assign();
  Finish run(Worker& worker, Job& job);
  Finish generate(Worker& worker, Job& job);
  void count(const Finish& finish);

  const std::shared_ptr<const runtime::Model> model_;
  const std::shared_ptr<const runtime::text::TextModel> text_;
  const uint64_t queue_limit_;
  uint64_t max_context_ = 0;
  std::shared_ptr<const runtime::GpuModel> gpu_;
  bool cpu_fallback_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  FairQueue queue_;
  bool draining_ = false, ending_ = false;
  SchedulerState state_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace cortiq::serve
