#include "runtime/executor/executor.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "formats/checked_math.h"
#include "runtime/cpu/limits.h"
#include "runtime/executor/futex.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kStageBits = 18;
constexpr uint64_t kStageMask = (uint64_t{1} << kStageBits) - 1;
constexpr uint64_t kTagBits = 32;
constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;
// How long a worker waits for the others before it parks: longer than the imbalance of a stage, shorter than the time
// slice of another process, so that a core that waits for a worker whose core was taken away soon is free for it.
// Between steps it covers the sampling of a token.
constexpr uint64_t kSpinNanoseconds = 50'000;
constexpr uint64_t kIdleFactor = 4;
// With many tokens items are that much longer, and so are waits for the last of them: waking who parked at each stage
// would cost more than it spares.
constexpr uint64_t kManyTokens = 64, kManyTokensFactor = 8;
// More workers than CPUs: the others need the core.
constexpr uint64_t kSpinsOversubscribed = 16;
// What workers know of a stage: its number of items, how many of them share what they read, and whether they are begun
// in their order.
constexpr uint64_t kInOrder = uint64_t{1} << 63;
constexpr uint64_t kTogetherShift = 40, kMostTogether = 1024;
constexpr uint64_t kItemsMask = (uint64_t{1} << kTogetherShift) - 1;
// A block is at most this part of a worker's share, so that a late or slow worker leaves most of it to the others, and
// at most half of what is left, so that the last ones are short. All wait for one whose core is slow or taken away for
// a block: a 48th of a large matrix is some microseconds. Where items are one share in order, its cursor is
// everybody's.
constexpr uint64_t kBlocksPerWorker = 48;
constexpr uint64_t kBlocksPerWorkerInOrder = 4;
// Brief calls that one worker runs one after the other.
constexpr uint32_t kMostBrief = 4;
constexpr uint64_t kCounterBytes = 64;

uint64_t stage_of(uint64_t phase) {
  return phase & kStageMask;
}
uint64_t step_of(uint64_t phase) {
  return phase >> kStageBits;
}
uint64_t make_phase(uint64_t step, uint64_t stage) {
  return step << kStageBits | stage;
}

/// Tells the stages of all steps apart: a worker would have to miss 2^32 of them to take one for another.
uint64_t tag_of(uint64_t phase, uint64_t stages) {
  return (step_of(phase) * stages + stage_of(phase)) & kTagMask;
}

/// Pauses that take `nanoseconds`. A pause is 5 to 50 ns, as the processor has it.
uint64_t pauses_in(uint64_t nanoseconds) {
  constexpr uint64_t kPauses = 512;
  uint64_t best = UINT64_MAX; // of three: interruptions only add
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t k = 0; k < kPauses; ++k)
      spin_pause();
    const auto took = std::chrono::steady_clock::now() - start;
    best = std::min(best, static_cast<uint64_t>(std::chrono::nanoseconds(took).count()));
  }
  return std::max<uint64_t>(kSpinsOversubscribed, nanoseconds * kPauses / std::max<uint64_t>(1, best));
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

/// How many of the shape's tokens are a prompt's.
uint64_t prompt_of(const StepContext& context, const StepShape& shape) {
  return std::min(shape.count, context.prompt - std::min(context.prompt, shape.first));
}

bool skipped(const Call& call, const OverlayState* overlay) {
  return call.gate && overlay && overlay->mask && !overlay->mask->gate(*call.gate);
}

} // namespace

Executor::Executor(const ResolvedProgram& program, unsigned threads, bool profile, const Placement& placement)
    : program_(program), placement_(placement), nodes_(numa_plan(placement)), planned_workers_(std::max(1u, threads)),
      ahead_(planned_workers_ > 1 ? WeightsAhead(program, planned_workers_) : WeightsAhead()),
      cursors_(new Cursor[planned_workers_]), items_(new std::atomic<uint64_t>[program.stages.size()]()),
      phase_(program.stages.size()),
      profiler_(profile ? std::make_unique<Profiler>(program, planned_workers_) : nullptr) {
  threads = std::max(1u, threads);
  spins_ = threads > read_cpu_limits().affinity ? kSpinsOversubscribed : threads > 1 ? pauses_in(kSpinNanoseconds) : 0;
  scratch_each_ = (program.scratch_bytes + 4095) / 4096 * 4096; // no page of two workers
  scratch_ = ReservedMemory(scratch_each_ * threads,
                            {.large_pages = program.work_space(placement).large_pages, .numa = false});
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

bool Executor::reserve(uint64_t positions, uint64_t sequences) {
  SharedNeeds most;
  for (const Stage& stage : program_.stages) {
    SharedNeeds sum; // alternatives included: some of them run together
    auto add = [&](const CallList& calls) {
      for (const auto& call : calls) {
        const SharedNeeds needs = call->shared_needs(positions);
        const uint64_t times = call->by_sequence() ? sequences : 1;
        sum.counters += times * needs.counters;
        sum.bytes += times * needs.bytes;
      }
    };
    add(stage.calls);
    for (const OverlayPoint& point : stage.points)
      for (const OverlayPoint::Alternative& alternative : point.alternatives)
        add(alternative.calls);
    most = {std::max(most.counters, sum.counters), std::max(most.bytes, sum.bytes)};
  }
  shared_ = ReservedMemory(most.bytes, placement_);
  counters_ = ReservedMemory(most.counters * kCounterBytes);
  positions_ = positions;
  sharing_ = sequences;
  return scratch_.bytes() == scratch_each_ * planned_workers_ && shared_.bytes() == most.bytes &&
         counters_.bytes() == most.counters * kCounterBytes;
}

bool Executor::same_segments() const {
  return std::equal(segments_.begin(), segments_.end(), planned_segments_.begin(), planned_segments_.end(),
                    [](const StepSegment& segment, const SegmentPlan& planned) {
                      return SegmentPlan{segment.first, segment.count} == planned;
                    });
}

void Executor::plan(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count) {
  const OverlayState* overlay = context.overlay;
  const uint64_t overlay_number = overlay ? overlay->number : 0;
  if (overlay_number == planned_overlay_ && count == planned_count_ && head_first == planned_first_ &&
      head_count == planned_heads_ && context.first == planned_begin_ && context.prompt == planned_prompt_ &&
      context.draft == planned_draft_ && context.stream == planned_stream_ &&
      context.missing_experts == planned_missing_ && context.first_stage == planned_stages_.first &&
      context.end_stage == planned_stages_.second && same_segments()) {
    if (context.position != planned_position_ || !segments_.empty())
      for (StagePlan& stage : stages_)
        if (stage.by_position)
          count_items(stage);
    planned_position_ = context.position;
    return;
  }
  planned_begin_ = context.first;
  planned_prompt_ = context.prompt;
  planned_draft_ = context.draft;
  planned_stream_ = context.stream;
  planned_missing_ = context.missing_experts;
  planned_stages_ = {context.first_stage, context.end_stage};
  planned_overlay_ = overlay_number;
  planned_count_ = count;
  planned_first_ = head_first;
  planned_heads_ = head_count;
  planned_position_ = context.position;
  planned_segments_.clear();
  for (const StepSegment& segment : segments_)
    planned_segments_.push_back({segment.first, segment.count});
  calls_.clear();
  stages_.clear();
  for (const Stage& stage : program_.stages) {
    const bool head = stage.head && !(stage.stream && context.stream);
    StepShape shape = head ? StepShape{head_first, head_count, threads()} : StepShape{context.first, count, threads()};
    shape.prompt = prompt_of(context, shape);
    StagePlan plan{static_cast<uint32_t>(calls_.size()), 0, 0, 1, false, true, false};
    if (stage.draft != context.draft || stages_.size() < context.first_stage || stages_.size() >= context.end_stage) {
      stages_.push_back(plan);
      continue;
    }
    SharedNeeds given;
    for_active_calls(stage, overlay, [&](const Call& call) {
      if (!context.missing_experts || call.of_experts())
        add_call(call, shape, given, plan);
    });
    stages_.push_back(plan);
    count_items(stages_.back());
  }
}

/// Adds a call to the stage, or, where it goes by sequence, one for every segment.
void Executor::add_call(const Call& call, const StepShape& shape, SharedNeeds& given, StagePlan& stage) {
  stage.by_position = stage.by_position || call.by_position();
  stage.in_order = stage.in_order || call.in_order();
  const bool split = call.by_sequence() && !segments_.empty();
  const uint32_t parts = split ? static_cast<uint32_t>(segments_.size()) : 1;
  const SharedNeeds needs = positions_ != 0 ? call.shared_needs(positions_) : SharedNeeds();
  for (uint32_t part = 0; part < parts; ++part) {
    calls_.push_back({&call, shape, 0, split ? part : kWhole});
    StepShape& own = calls_.back().shape;
    if (split) { // what the segment has of the stage's tokens
      const uint64_t end = std::min(shape.first + shape.count, segments_[part].first + segments_[part].count);
      own.first = std::max(shape.first, segments_[part].first);
      own.count = end - std::min(end, own.first);
      own.prompt = prompt_of(*context_, own);
      // Sequences are work for several threads already: each is cut less.
      own.threads = static_cast<unsigned>(formats::ceil_div(uint64_t{own.threads}, uint64_t{parts}));
    }
    ++stage.calls;
    if (positions_ == 0 || part >= sharing_)
      continue;
    own.shared = {counters_.data() + given.counters * kCounterBytes, shared_.data() + given.bytes, needs.bytes};
    given = {given.counters + needs.counters, given.bytes + needs.bytes};
  }
}

void Executor::count_items(StagePlan& stage) {
  stage.items = 0;
  bool brief = stage.calls <= kMostBrief;
  std::optional<uint64_t> together; // what all calls say; 1 where they differ
  for (uint32_t i = stage.first_call; i < stage.first_call + stage.calls; ++i) {
    const uint32_t segment = calls_[i].segment;
    StepShape& shape = calls_[i].shape;
    shape.position = segment == kWhole ? context_->position : segments_[segment].context.position;
    calls_[i].first_item = stage.items;
    brief = brief && calls_[i].call->brief(shape);
    const uint64_t items = shape.count == 0 ? 0 : calls_[i].call->items(shape);
    stage.items += items;
    if (items == 0)
      continue;
    const uint64_t own = calls_[i].call->together(shape);
    together = together.value_or(own) == own && items % own == 0 && own <= kMostTogether ? own : 1;
  }
  stage.alone = stage.items <= 1 || brief;
  stage.together = stage.in_order ? 1 : together.value_or(1);
  // Whoever sees it also sees that the phases of the plan before are over.
  items_[static_cast<size_t>(&stage - stages_.data())].store(
      stage.items | stage.together << kTogetherShift | (stage.in_order ? kInOrder : 0), std::memory_order_release);
}

void Executor::step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count,
                    std::span<const StepSegment> segments) {
  context_ = &context;
  segments_ = segments;
  plan(context, count, head_first, head_count);
  const bool patient = count >= kManyTokens && spins_ > kSpinsOversubscribed;
  stage_spins_.store(patient ? spins_ * kManyTokensFactor : spins_, std::memory_order_relaxed);
  if (profiler_) {
    for (const CallPlan& call : calls_)
      profiler_->add_call(*call.call, call.segment == kWhole ? context : segments[call.segment].context, call.shape);
    profiler_->begin_step();
  }
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
  if (profiler_)
    profiler_->begin_stages();
  const uint64_t phase = make_phase(step, run_serial_stages(0, 0));
  publish(phase);
  run_stages(phase, 0);
}

void Executor::worker(unsigned index) {
  // Refusals leave the thread where the system puts it. The caller's thread is not ours to bind.
  if (!nodes_.homes.empty())
    bind_thread(nodes_.homes[home_of(index, planned_workers_, nodes_.homes)]);
  if (!nodes_.memory.empty())
    interleave_thread(nodes_.memory);
  uint64_t phase = phase_.load(std::memory_order_acquire);
  while (!stop_.load()) {
    if (stage_of(phase) == program_.stages.size()) {
      phase = wait_for_change(phase, spins_ * kIdleFactor, ahead_.of(program_.stages.size(), index));
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
      phase = wait_for_change(phase, stage_spins_.load(std::memory_order_relaxed), ahead_.of(stage_of(phase), worker));
    }
  }
}

bool Executor::take_items(uint64_t phase, unsigned worker) {
  // Reported share by share: nobody waits for a worker that only looks for more.
  for (unsigned i = 0; i < threads(); ++i) {
    const unsigned owner = (worker + i) % threads();
    uint64_t done = 0, items = 0;
    while (const std::optional<Block> block = take_block(phase, owner)) {
      // Until it reports them the step cannot end: the plan may be read.
      const StagePlan& stage = stages_[stage_of(phase)];
      run_items(stage, block->begin, block->end, worker);
      done += block->end - block->begin;
      items = stage.items;
    }
    if (done != 0 && finished_.fetch_add(done, std::memory_order_acq_rel) + done == items)
      return true;
  }
  return false;
}

std::optional<Executor::Block> Executor::take_block(uint64_t phase, unsigned owner) {
  const uint64_t tag = tag_of(phase, program_.stages.size() + 1);
  std::atomic<uint64_t>& cursor = cursors_[owner].taken;
  uint64_t seen = cursor.load(std::memory_order_acquire);
  while (true) {
    const uint64_t known = items_[stage_of(phase)].load(std::memory_order_acquire), items = known & kItemsMask;
    const uint64_t together = (known & ~kInOrder) >> kTogetherShift;
    const bool in_order = (known & kInOrder) != 0;
    // While the phase lasts, the items are its own, and a cursor under another tag is of a stage before it: a phase
    // ends only after every share was taken under its tag, and the exchange below fails then.
    if (phase_.load(std::memory_order_acquire) != phase)
      return std::nullopt;
    if (items == 0)
      return std::nullopt;
    const uint64_t first = in_order ? 0 : items / together * owner / threads() * together;
    const uint64_t last = !in_order ? items / together * (owner + 1) / threads() * together : owner == 0 ? items : 0;
    const uint64_t taken = seen >> kTagBits == tag ? seen & kTagMask : 0;
    if (first + taken >= last)
      return std::nullopt;
    const uint64_t share = last - first, left = share - taken;
    const uint64_t blocks = in_order ? kBlocksPerWorkerInOrder * threads() : kBlocksPerWorker;
    uint64_t count = std::max<uint64_t>(1, std::min(share / blocks, left / 2));
    // What belongs together is taken apart only at the end.
    if (count >= together)
      count -= count % together;
    else
      count = left >= 2 * together ? together : std::max<uint64_t>(1, left / 2);
    if (cursor.compare_exchange_weak(seen, tag << kTagBits | (taken + count), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return Block{first + taken, first + taken + count};
  }
}

uint64_t Executor::run_serial_stages(uint64_t stage, unsigned worker) {
  for (; stage < stages_.size() && stages_[stage].alone; ++stage) {
    run_items(stages_[stage], 0, stages_[stage].items, worker);
    if (profiler_)
      profiler_->close_stage(stage, false);
  }
  return stage;
}

void Executor::publish(uint64_t phase) {
  finished_.store(0, std::memory_order_relaxed); // everybody has reported
  phase_.store(phase, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) != 0)
    futex_wake_all(phase_);
}

uint64_t Executor::wait_for_change(uint64_t phase, uint64_t spins, std::span<const uint8_t> ahead) {
  AskAhead ask(ahead);
  for (uint64_t i = 0; i < spins; ++i) {
    if (const uint64_t now = phase_.load(std::memory_order_acquire); now != phase)
      return now;
    if (!ask.more())
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
  uint8_t* scratch = scratch_.data() + worker * scratch_each_;
  for (uint32_t i = 0; i < stage.calls && begin < end; ++i) {
    const CallPlan& plan = calls_[stage.first_call + i];
    const uint64_t next = i + 1 < stage.calls ? calls_[stage.first_call + i + 1].first_item : stage.items;
    const uint64_t last = std::min(end, next);
    if (begin >= last)
      continue;
    const uint64_t start = profiler_ ? Profiler::now() : 0;
    if (!skipped(*plan.call, context_->overlay))
      plan.call->run(plan.segment == kWhole ? *context_ : segments_[plan.segment].context, plan.shape,
                     begin - plan.first_item, last - plan.first_item, scratch);
    if (profiler_)
      profiler_->record(worker, *plan.call, start, Profiler::now());
    begin = last;
  }
}

} // namespace cortiq::runtime
