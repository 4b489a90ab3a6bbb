#include "tools/cortiq-serve/engine/scheduler.h"

#include <algorithm>
#include <new>

#include "runtime/vulkan/gpu.h"

namespace cortiq::serve {

Scheduler::Scheduler(uint64_t token_count, std::shared_ptr<const runtime::text::TextModel> text,
                     std::unique_ptr<runtime::BatchEngine> engine, const SchedulerOptions& options)
    : queue_limit_(options.queue), gpu_(options.gpu), cpu_fallback_(options.cpu_fallback),
      loop_(token_count, std::move(text), std::move(engine)) {}

StatusOr<std::unique_ptr<Scheduler>> Scheduler::create(std::shared_ptr<const runtime::Model> model,
                                                       std::shared_ptr<const runtime::text::TextModel> text,
                                                       const SchedulerOptions& options) {
  runtime::BatchOptions batch;
  batch.threads = options.threads;
  batch.kv = options.kv;
  batch.max_context = options.max_context;
  batch.sequences = options.sessions;
  batch.cache_bytes = options.cache_bytes;
  batch.placement = options.placement;
  batch.gpu = options.gpu;
  batch.cpu_fallback = options.cpu_fallback;
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<runtime::BatchEngine> engine, runtime::BatchEngine::create(model, batch));
  std::unique_ptr<Scheduler> out(new Scheduler(model->info().token_count, std::move(text), std::move(engine), options));
  out->state_.sessions = options.sessions;
  out->state_.cache = out->loop_.engine().cache();
  out->worker_ = std::thread([scheduler = out.get()] { scheduler->work(); });
  return out;
}

Scheduler::~Scheduler() {
  drain(Job::Clock::now());
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable())
    worker_.join();
}

std::shared_ptr<Job> Scheduler::submit(Request request, Job::Clock::time_point deadline) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  const std::vector<std::shared_ptr<Job>> jobs = submit_all(std::move(one), deadline);
  return jobs.empty() ? nullptr : jobs.front();
}

std::vector<std::shared_ptr<Job>> Scheduler::submit_all(std::vector<Request> requests,
                                                        Job::Clock::time_point deadline) {
  const std::lock_guard lock(mutex_);
  drop_cancelled();
  // Free sessions take requests at once: only those that have to wait count.
  const uint64_t free = state_.sessions - running_.size();
  if (draining_ || queue_.size() + requests.size() > queue_limit_ + free) {
    state_.refused += requests.size();
    return {};
  }
  std::vector<std::shared_ptr<Job>> out;
  for (Request& request : requests) {
    out.push_back(std::make_shared<Job>(std::move(request), deadline));
    ++state_.accepted;
    queue_.push(out.back());
  }
  changed_.notify_all();
  return out;
}

/// Of the queue. The mutex is held.
void Scheduler::drop_cancelled() {
  for (const std::shared_ptr<Job>& job : queue_.take_cancelled()) {
    job->finish({.outcome = Outcome::kCancelled, .message = ""});
    ++state_.cancelled;
  }
}

void Scheduler::work() {
  std::vector<BatchLoop::Ended> ended;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || queue_.size() != 0 || !running_.empty(); });
    drop_cancelled();
    if (ending_ && running_.empty() && queue_.size() == 0)
      return;
    try {
      while (!loop_.full() && queue_.size() != 0) {
        running_.push_back(queue_.pop());
        loop_.admit(running_.back());
      }
      lock.unlock();
      loop_.round(ended);
    } catch (const std::bad_alloc&) {
      loop_.fail_all("there is not enough memory for this request", ended);
    }
    if (!lock.owns_lock())
      lock.lock();
    settle(ended);
  }
}

/// The counters are right before the clients hear of the end. The mutex is held.
void Scheduler::settle(std::vector<BatchLoop::Ended>& ended) {
  state_.batch = loop_.counts();
  state_.cache = loop_.engine().cache();
  for (BatchLoop::Ended& one : ended) {
    const Finish& finish = one.finish;
    state_.prompt_tokens += finish.prompt_tokens;
    state_.kept_tokens += finish.kept_tokens;
    state_.generated_tokens += finish.generated_tokens;
    ++(finish.outcome == Outcome::kCancelled ? state_.cancelled
       : finish.outcome == Outcome::kFailed  ? state_.failed
                                             : state_.finished);
    if (one.first)
      state_.first_token_seconds += std::chrono::duration<double>(*one.first - one.job->arrived).count();
    std::erase(running_, one.job);
    one.job->finish(std::move(one.finish));
  }
  if (!ended.empty())
    changed_.notify_all();
  ended.clear();
}

void Scheduler::drain(Job::Clock::time_point until) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto idle = [&] { return queue_.size() == 0 && running_.empty(); };
  if (changed_.wait_until(lock, until, idle))
    return;
  while (const std::shared_ptr<Job> job = queue_.pop()) {
    job->finish({.outcome = Outcome::kCancelled, .message = ""});
    ++state_.cancelled;
  }
  for (const std::shared_ptr<Job>& job : running_)
    job->cancel();
  changed_.wait(lock, idle);
}

bool Scheduler::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

SchedulerState Scheduler::state() const {
  const std::lock_guard lock(mutex_);
  SchedulerState out = state_;
  out.waiting = queue_.size();
  out.gpu_lost = gpu_ && gpu_->lost();
  out.serving = !out.gpu_lost || cpu_fallback_;
  out.running = running_.size();
  return out;
}

} // namespace cortiq::serve
