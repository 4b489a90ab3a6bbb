#include "runtime/executor/profiler.h"

#include <algorithm>
#include <chrono>

namespace cortiq::runtime {
namespace {

size_t call_count(const Stage& stage) {
  size_t count = stage.calls.size();
  for (const OverlayPoint& point : stage.points)
    for (const OverlayPoint::Alternative& alternative : point.alternatives)
      count += alternative.calls.size();
  return count;
}

} // namespace

Profiler::Profiler(const ResolvedProgram& program, unsigned workers)
    : program_(program), lanes_(workers), stages_(program.stages.size()), steps_(program.call_count),
      work_(program.call_count) {
  for (Lane& lane : lanes_)
    lane.busy.resize(program.call_count);
}

uint64_t Profiler::now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void Profiler::reset(uint64_t traced_steps) {
  for (Lane& lane : lanes_) {
    lane.busy.assign(lane.busy.size(), 0);
    lane.events.clear();
  }
  stages_.assign(stages_.size(), {});
  steps_.assign(steps_.size(), 0);
  work_.assign(work_.size(), {});
  step_count_ = wall_ = setup_ = 0;
  traced_steps_ = traced_steps;
}

void Profiler::begin_stages() {
  tracing_ = step_count_ < traced_steps_;
  const uint64_t at = now();
  setup_ += at - last_;
  last_ = at;
}

void Profiler::add_call(const Call& call, const StepContext& context, const StepShape& shape) {
  if (shape.count == 0)
    return;
  ++steps_[call.number];
  const CallWork work = call.work(context, shape);
  work_[call.number].bytes += work.bytes;
  work_[call.number].operations += work.operations;
}

void Profiler::close_stage(uint64_t stage, bool parallel) {
  const uint64_t at = now();
  (parallel ? stages_[stage].parallel : stages_[stage].serial) += at - last_;
  last_ = at;
}

void Profiler::end_step() {
  ++step_count_;
  wall_ += now() - begun_;
}

std::vector<Profiler::CallTimes> Profiler::calls() const {
  std::vector<CallTimes> out;
  for (size_t i = 0; i < program_.stages.size(); ++i) {
    const size_t first = out.size();
    uint64_t sum = 0;
    auto add = [&](const CallList& calls) {
      for (const auto& call : calls) {
        CallTimes times{call.get(), steps_[call->number], 0, 0, work_[call->number]};
        for (const Lane& lane : lanes_)
          times.busy += lane.busy[call->number];
        sum += times.busy;
        out.push_back(times);
      }
    };
    add(program_.stages[i].calls);
    for (const OverlayPoint& point : program_.stages[i].points)
      for (const OverlayPoint::Alternative& alternative : point.alternatives)
        add(alternative.calls);
    const double wall = static_cast<double>(stages_[i].parallel + stages_[i].serial);
    for (size_t j = first; j < out.size() && sum != 0; ++j)
      out[j].wall = static_cast<uint64_t>(wall * static_cast<double>(out[j].busy) / static_cast<double>(sum));
  }
  return out;
}

Profiler::Totals Profiler::totals() const {
  Totals out;
  out.steps = step_count_;
  out.wall = wall_;
  out.setup = setup_;
  const std::vector<CallTimes> all = calls();
  size_t next = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    out.parallel += stages_[i].parallel;
    out.serial += stages_[i].serial;
    uint64_t busy = 0;
    for (size_t left = call_count(program_.stages[i]); left != 0; --left)
      busy += all[next++].busy;
    // A stage is the one or the other in steps of one shape.
    const uint64_t serial = std::min(busy, stages_[i].serial);
    out.busy_serial += serial;
    out.busy_parallel += busy - serial;
  }
  return out;
}

std::vector<Profiler::Event> Profiler::events() const {
  std::vector<Event> out;
  for (const Lane& lane : lanes_)
    out.insert(out.end(), lane.events.begin(), lane.events.end());
  return out;
}

} // namespace cortiq::runtime
