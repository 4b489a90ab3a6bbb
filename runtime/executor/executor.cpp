#include "runtime/executor/executor.h"

#include <algorithm>
#include <system_error>

#include "runtime/cpu/limits.h"
#include "runtime/executor/futex.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kStageBits = 18;
constexpr uint64_t kStageMask = (uint64_t{1} << kStageBits) - 1;
constexpr uint64_t kItemBits = 32;
constexpr uint64_t kItemMask = (uint64_t{1} << kItemBits) - 1;
// Pauses before a worker parks. A pause is 10 to 50 ns, so this covers a stage's imbalance; between steps it is
// multiplied to cover the sampling of a token. More workers than CPUs: the others need the core, park at once.
constexpr unsigned kSpins = 4000;
constexpr unsigned kSpinsOversubscribed = 16;
constexpr uint64_t kCounterBytes = 64;
constexpr unsigned kIdleFactor = 4;
// Blocks a worker takes of a stage, so that a late or slow worker leaves its share to the others.
constexpr uint64_t kBlocksPerWorker = 4;

uint64_t stage_of(uint64_t phase) {
  return phase & kStageMask;
}
uint64_t step_of(uint64_t phase) {
  return phase >> kStageBits;
}
uint64_t make_phase(uint64_t step, uint64_t stage) {
  return step << kStageBits | stage;
}

/// Calls `use` with every call of `stage` that runs under `overlay`.
template <class Use>
void for_active_calls(const Stage& stage, const OverlayState* overlay, Use use) {
  size_t next = 0;
  for (const OverlayPoint& point : stage.points) {
    for (; next < point.first; ++next)
      use(*stage.calls[next]);
    const CallList* chosen = overlay ? overlay->chosen[point.number] : nullptr;
    if (!chosen)
      continue;
    for (const auto& call : *chosen)
      use(*call);
    next += point.count;
  }
  for (; next < stage.calls.size(); ++next)
    use(*stage.calls[next]);
}

bool skipped(const Call& call, const OverlayState* overlay) {
  return call.gate && overlay && overlay->mask && !overlay->mask->gate(*call.gate);
}

} // namespace

Executor::Executor(const ResolvedProgram& program, unsigned threads, bool profile)
    : program_(program), cursors_(new Cursor[program.stages.size()]), phase_(program.stages.size()),
      profiler_(profile ? std::make_unique<Profiler>(program, std::max(1u, threads)) : nullptr) {
  threads = std::max(1u, threads);
  spins_ = threads > read_cpu_limits().affinity ? kSpinsOversubscribed : kSpins;
  scratch_each_ = (program.scratch_bytes + 127) / 64 * 64;
  scratch_.reset(new uint8_t[scratch_each_ * threads + 64]());
  scratch_base_ = scratch_.get() + (64 - reinterpret_cast<uintptr_t>(scratch_.get()) % 64) % 64;
  calls_.reserve(program.call_count);
  stages_.reserve(program.stages.size());
  for (unsigned i = 1; i < threads; ++i) {
    try {
      others_.emplace_back([this, i] { worker(i); });
    } catch (const std::system_error&) {
      break; // the standard library reports a refused thread this way only; fewer workers do
    }
  }
}

Executor::~Executor() {
  stop_.store(true);
  publish(make_phase(step_of(phase_.load()) + 1, program_.stages.size()));
  for (std::thread& thread : others_)
    thread.join();
}

bool Executor::reserve_shared(uint64_t positions) {
  SharedNeeds most;
  for (const Stage& stage : program_.stages) {
    SharedNeeds sum; // alternatives included: some of them run together
    auto add = [&](const CallList& calls) {
      for (const auto& call : calls) {
        const SharedNeeds needs = call->shared_needs(positions);
        sum.counters += needs.counters;
        sum.bytes += needs.bytes;
      }
    };
    add(stage.calls);
    for (const OverlayPoint& point : stage.points)
      for (const OverlayPoint::Alternative& alternative : point.alternatives)
        add(alternative.calls);
    most = {std::max(most.counters, sum.counters), std::max(most.bytes, sum.bytes)};
  }
  shared_ = ReservedMemory(most.bytes);
  counters_ = ReservedMemory(most.counters * kCounterBytes);
  positions_ = positions;
  return shared_.bytes() == most.bytes && counters_.bytes() == most.counters * kCounterBytes;
}

void Executor::plan(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count) {
  const OverlayState* overlay = context.overlay;
  if (overlay == planned_overlay_ && count == planned_count_ && head_first == planned_first_ &&
      head_count == planned_heads_) {
    if (context.position != planned_position_)
      for (StagePlan& stage : stages_)
        if (stage.by_position)
          count_items(stage, context.position);
    planned_position_ = context.position;
    return;
  }
  planned_overlay_ = overlay;
  planned_count_ = count;
  planned_first_ = head_first;
  planned_heads_ = head_count;
  planned_position_ = context.position;
  calls_.clear();
  stages_.clear();
  for (const Stage& stage : program_.stages) {
    const StepShape shape = stage.head ? StepShape{head_first, head_count, threads()} : StepShape{0, count, threads()};
    StagePlan plan{static_cast<uint32_t>(calls_.size()), 0, 0, 1, false};
    SharedNeeds given;
    for_active_calls(stage, overlay, [&](const Call& call) {
      calls_.push_back({&call, shape, 0});
      if (positions_ != 0) {
        const SharedNeeds needs = call.shared_needs(positions_);
        calls_.back().shape.shared = {counters_.data() + given.counters * kCounterBytes, shared_.data() + given.bytes,
                                      needs.bytes};
        given = {given.counters + needs.counters, given.bytes + needs.bytes};
      }
      plan.by_position = plan.by_position || call.by_position();
      ++plan.calls;
    });
    count_items(plan, context.position);
    stages_.push_back(plan);
  }
}

void Executor::count_items(StagePlan& stage, uint64_t position) {
  stage.items = 0;
  for (uint32_t i = stage.first_call; i < stage.first_call + stage.calls; ++i) {
    calls_[i].shape.position = position;
    calls_[i].first_item = stage.items;
    stage.items += calls_[i].shape.count == 0 ? 0 : calls_[i].call->items(calls_[i].shape);
  }
  stage.block = std::max<uint64_t>(1, stage.items / (kBlocksPerWorker * threads()));
}

void Executor::step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count) {
  plan(context, count, head_first, head_count);
  if (profiler_) {
    for (const CallPlan& call : calls_)
      profiler_->add_call(*call.call, context, call.shape);
    profiler_->begin_step();
  }
  context_ = &context;
  run();
  if (profiler_)
    profiler_->end_step();
}

void Executor::run() {
  if (others_.empty()) {
    if (profiler_)
      profiler_->begin_stages();
    for (size_t i = 0; i < stages_.size(); ++i) {
      run_items(stages_[i], 0, stages_[i].items, 0);
      if (profiler_)
        profiler_->close_stage(i, true);
    }
    return;
  }
  const uint64_t step = step_of(phase_.load(std::memory_order_relaxed)) + 1;
  open_cursors(step);
  if (profiler_)
    profiler_->begin_stages();
  const uint64_t phase = make_phase(step, run_serial_stages(0, 0));
  publish(phase);
  run_stages(phase, 0);
}

void Executor::open_cursors(uint64_t step) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    // Closed first: a worker of an earlier step that sees the new number of items must not see the old cursor.
    cursor.next.store(step << kItemBits | kItemMask, std::memory_order_relaxed);
    cursor.items.store(stages_[i].items, std::memory_order_release);
    cursor.block.store(stages_[i].block, std::memory_order_relaxed);
    cursor.finished.store(0, std::memory_order_relaxed);
    cursor.next.store(step << kItemBits, std::memory_order_release);
  }
}

void Executor::worker(unsigned index) {
  uint64_t phase = phase_.load(std::memory_order_acquire);
  while (!stop_.load()) {
    if (stage_of(phase) == program_.stages.size()) {
      phase = wait_for_change(phase, spins_ * kIdleFactor);
    } else {
      run_stages(phase, index);
      phase = phase_.load(std::memory_order_acquire);
    }
  }
}

void Executor::run_stages(uint64_t phase, unsigned worker) {
  const uint64_t step = step_of(phase);
  while (step_of(phase) == step && stage_of(phase) < program_.stages.size()) {
    if (take_items(phase, worker)) {
      if (profiler_)
        profiler_->close_stage(stage_of(phase), true);
      phase = make_phase(step, run_serial_stages(stage_of(phase) + 1, worker));
      publish(phase);
    } else {
      phase = wait_for_change(phase, spins_);
    }
  }
}

bool Executor::take_items(uint64_t phase, unsigned worker) {
  Cursor& cursor = cursors_[stage_of(phase)];
  uint64_t next = cursor.next.load(std::memory_order_acquire);
  while (true) {
    const uint64_t items = cursor.items.load(std::memory_order_acquire);
    const uint64_t block = cursor.block.load(std::memory_order_relaxed);
    if (next >> kItemBits != (step_of(phase) & kItemMask) || (next & kItemMask) >= items)
      return false;
    const uint64_t begin = next & kItemMask;
    const uint64_t count = std::min(block, items - begin);
    if (!cursor.next.compare_exchange_weak(next, next + count, std::memory_order_acquire, std::memory_order_acquire))
      continue;
    // From here on the step cannot end without this worker: its plan may be read.
    run_items(stages_[stage_of(phase)], begin, begin + count, worker);
    if (cursor.finished.fetch_add(count, std::memory_order_acq_rel) + count == items)
      return true;
    next = cursor.next.load(std::memory_order_acquire);
  }
}

uint64_t Executor::run_serial_stages(uint64_t stage, unsigned worker) {
  for (; stage < stages_.size() && stages_[stage].items <= 1; ++stage) {
    run_items(stages_[stage], 0, stages_[stage].items, worker);
    if (profiler_)
      profiler_->close_stage(stage, false);
  }
  return stage;
}

void Executor::publish(uint64_t phase) {
  phase_.store(phase, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) != 0)
    futex_wake_all(phase_);
}

uint64_t Executor::wait_for_change(uint64_t phase, unsigned spins) {
  for (unsigned i = 0; i < spins; ++i) {
    if (const uint64_t now = phase_.load(std::memory_order_acquire); now != phase)
      return now;
    spin_pause();
  }
  parked_.fetch_add(1, std::memory_order_seq_cst);
  uint64_t now;
  while ((now = phase_.load(std::memory_order_seq_cst)) == phase)
    futex_wait(phase_, phase);
  parked_.fetch_sub(1, std::memory_order_seq_cst);
  return now;
}

void Executor::run_items(const StagePlan& stage, uint64_t begin, uint64_t end, unsigned worker) {
  uint8_t* scratch = scratch_base_ + worker * scratch_each_;
  for (uint32_t i = 0; i < stage.calls && begin < end; ++i) {
    const CallPlan& plan = calls_[stage.first_call + i];
    const uint64_t next = i + 1 < stage.calls ? calls_[stage.first_call + i + 1].first_item : stage.items;
    const uint64_t last = std::min(end, next);
    if (begin >= last)
      continue;
    const uint64_t start = profiler_ ? Profiler::now() : 0;
    if (!skipped(*plan.call, context_->overlay))
      plan.call->run(*context_, plan.shape, begin - plan.first_item, last - plan.first_item, scratch);
    if (profiler_)
      profiler_->record(worker, *plan.call, start, Profiler::now());
    begin = last;
  }
}

} // namespace cortiq::runtime
