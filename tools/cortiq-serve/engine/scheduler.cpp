#include "tools/cortiq-serve/engine/scheduler.h"

#include <algorithm>

#include "runtime/cpu/limits.h"
#include "runtime/generate/model_sampler.h"
#include "runtime/vulkan/gpu.h"
#include "tools/cortiq-serve/engine/log_probabilities.h"
#include "tools/cortiq-serve/engine/stop_text.h"

namespace cortiq::serve {
namespace {

/// Text and tokens on their way to a job.
class Answer {
public:
  Answer(Job& job, const runtime::text::Tokenizer& tokenizer)
      : job_(job), decoder_(tokenizer), stops_(job.request.stops) {}

  Status take(uint32_t id, std::span<const float> logits) {
    if (job_.request.logprobs) {
      TokenRecord record = token_record(logits, id, *job_.request.logprobs);
      record.text_offset = decoded_;
      piece_.tokens.push_back(std::move(record));
    }
    ++tokens_;
    CORTIQ_ASSIGN_OR_RETURN(const std::string text, decoder_.push(id));
    decoded_ += text.size();
    piece_.text = stops_.push(text);
    send();
    return {};
  }
  Status end() {
    CORTIQ_ASSIGN_OR_RETURN(const std::string rest, decoder_.flush());
    piece_.text = stops_.push(rest);
    piece_.text += stops_.flush();
    send();
    return {};
  }
  bool stopped() const { return stops_.stopped(); }
  uint64_t tokens() const { return tokens_; }
  std::optional<Job::Clock::time_point> first() const { return first_; }

private:
  void send() {
    if (piece_.text.empty() && piece_.tokens.empty())
      return;
    if (!first_)
      first_ = Job::Clock::now();
    job_.push(std::exchange(piece_, {}));
  }

  Job& job_;
  runtime::text::StreamDecoder decoder_;
  StopText stops_;
  Piece piece_;
  uint64_t tokens_ = 0, decoded_ = 0;
  std::optional<Job::Clock::time_point> first_;
};

} // namespace

struct Scheduler::Worker {
  std::unique_ptr<runtime::Session> session;
  std::vector<uint32_t> held; ///< ids that the session holds, under `overlay`
  formats::OverlaySelection overlay;
  std::shared_ptr<Job> job; ///< null: free
  std::thread thread;

  size_t common(const Request& request) const {
    if (!(overlay == request.overlay))
      return 0;
    return static_cast<size_t>(
        std::mismatch(held.begin(), held.end(), request.prompt.begin(), request.prompt.end()).first - held.begin());
  }
};

Scheduler::Scheduler(std::shared_ptr<const runtime::Model> model, std::shared_ptr<const runtime::text::TextModel> text,
                     uint64_t queue)
    : model_(std::move(model)), text_(std::move(text)), queue_limit_(queue) {}

StatusOr<std::unique_ptr<Scheduler>> Scheduler::create(std::shared_ptr<const runtime::Model> model,
                                                       std::shared_ptr<const runtime::text::TextModel> text,
                                                       const SchedulerOptions& options) {
  std::unique_ptr<Scheduler> out(new Scheduler(model, std::move(text), options.queue));
  const unsigned threads =
      options.threads != 0 ? options.threads : runtime::default_threads(runtime::read_cpu_limits());
  runtime::SessionOptions open;
  open.threads = std::max<unsigned>(1, static_cast<unsigned>(threads / options.sessions));
  open.max_context = options.max_context;
  open.kv = options.kv;
  open.gpu = out->gpu_ = options.gpu;
  open.cpu_fallback = out->cpu_fallback_ = options.cpu_fallback;
  for (uint64_t i = 0; i < options.sessions; ++i) {
    auto worker = std::make_unique<Worker>();
    CORTIQ_ASSIGN_OR_RETURN(worker->session, runtime::Session::create(model, open));
    out->max_context_ = worker->session->max_context();
    out->workers_.push_back(std::move(worker));
  }
  out->state_.sessions = options.sessions;
  for (auto& worker : out->workers_)
    worker->thread = std::thread([scheduler = out.get(), w = worker.get()] { scheduler->work(*w); });
  return out;
}

Scheduler::~Scheduler() {
  drain(Job::Clock::now());
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (auto& worker : workers_)
    if (worker->thread.joinable())
      worker->thread.join();
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
  for (const std::shared_ptr<Job>& job : queue_.take_cancelled()) {
    job->finish({.outcome = Outcome::kCancelled, .message = ""});
    ++state_.cancelled;
  }
  // A free session takes a request at once: only those that have to wait count.
  const auto free = static_cast<size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) { return !worker->job; }));
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
  assign();
  return out;
}

/// Gives waiting jobs to free workers. The mutex is held.
void Scheduler::assign() {
  while (queue_.size() != 0) {
    Worker* free = nullptr;
    for (const auto& worker : workers_)
      if (!worker->job && !free)
        free = worker.get();
    if (!free)
      return;
    const std::shared_ptr<Job> job = queue_.pop();
    for (const auto& worker : workers_)
      if (!worker->job && worker->common(job->request) > free->common(job->request))
        free = worker.get();
    free->job = job;
    changed_.notify_all();
  }
}

void Scheduler::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return worker.job || ending_; });
    if (!worker.job)
      return;
    const std::shared_ptr<Job> job = worker.job;
    lock.unlock();
    Finish finish = run(worker, *job);
    lock.lock();
    // The counters are right before the client hears of the end.
    count(finish);
    job->finish(std::move(finish));
    worker.job = nullptr;
    assign();
    changed_.notify_all();
  }
}

Finish Scheduler::run(Worker& worker, Job& job) {
  if (job.cancelled())
    return {.outcome = Outcome::kCancelled, .message = ""};
  try {
    return generate(worker, job);
  } catch (const std::bad_alloc&) {
    worker.session->reset();
    worker.held.clear();
    return {.outcome = Outcome::kFailed, .message = "there is not enough memory for this request"};
  }
}

Finish Scheduler::generate(Worker& worker, Job& job) {
  const Request& request = job.request;
  runtime::Session& session = *worker.session;
  Finish out;
  out.prompt_tokens = request.prompt.size();
  const auto failed = [&](const Status& status) {
    session.reset();
    worker.held.clear();
    out.outcome = Outcome::kFailed;
    out.message = status.message();
    return out;
  };

  // The beginning that the session holds is not computed again; the last token always is, for its logits.
  const size_t kept = std::min(worker.common(request), request.prompt.size() - 1);
  if (!(worker.overlay == request.overlay)) {
    if (const Status set = session.set_overlay(request.overlay); !set.ok())
      return failed(set);
    const std::lock_guard lock(mutex_);
    worker.overlay = request.overlay;
  }
  out.kept_tokens = kept;
  session.rewind(kept);

  const runtime::text::TextConfig& config = text_->config;
  runtime::sampling::Sampler sampler =
      runtime::model_sampler(request.sampling, session, model_->info().token_count, config.suppress_ids);
  sampler.observe(std::span(request.prompt).first(kept));
  Answer answer(job, text_->tokenizer);
  runtime::GenerateOptions options;
  options.max_tokens = request.max_tokens;
  if (!request.ignore_end)
    options.stop_ids = config.eos_ids;
  options.constraint = request.constraint.get();
  options.cancelled = [&] { return answer.stopped() || job.cancelled(); };
  const StatusOr<runtime::Generated> generated =
      runtime::generate(session, sampler, std::span(request.prompt).subspan(kept), options,
                        [&](uint32_t id, std::span<const float> logits) { return answer.take(id, logits); });
  if (!generated.ok())
    return failed(generated.status());
  {
    const std::lock_guard lock(mutex_); // submit() compares with it
    worker.held = request.prompt;
    worker.held.insert(worker.held.end(), generated->tokens.begin(), generated->tokens.end());
    worker.held.resize(session.position());
  }
  if (const Status ended = answer.end(); !ended.ok())
    return failed(ended);
  out.generated_tokens = answer.tokens();
  out.outcome = answer.stopped() || generated->finish == runtime::FinishReason::kStop ? Outcome::kStop
                : generated->finish == runtime::FinishReason::kLength                 ? Outcome::kLength
                                                                                      : Outcome::kCancelled;
  if (answer.first()) {
    const std::lock_guard lock(mutex_);
    state_.first_token_seconds += std::chrono::duration<double>(*answer.first() - job.arrived).count();
  }
  return out;
}

/// The mutex is held.
void Scheduler::count(const Finish& finish) {
  state_.prompt_tokens += finish.prompt_tokens;
  state_.kept_tokens += finish.kept_tokens;
  state_.generated_tokens += finish.generated_tokens;
  ++(finish.outcome == Outcome::kCancelled ? state_.cancelled
     : finish.outcome == Outcome::kFailed  ? state_.failed
                                           : state_.finished);
}

void Scheduler::drain(Job::Clock::time_point until) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto idle = [&] {
    return queue_.size() == 0 &&
           std::none_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->job; });
  };
  if (changed_.wait_until(lock, until, idle))
    return;
  while (const std::shared_ptr<Job> job = queue_.pop()) {
    job->finish({.outcome = Outcome::kCancelled, .message = ""});
    ++state_.cancelled;
  }
  for (const auto& worker : workers_)
    if (worker->job)
      worker->job->cancel();
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
  out.running = static_cast<uint64_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->job != nullptr; }));
  return out;
}

} // namespace cortiq::serve
