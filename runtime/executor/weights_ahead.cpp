#include "runtime/executor/weights_ahead.h"

#include <algorithm>

namespace cortiq::runtime {
namespace {

// What a core reads in some ten microseconds, which waits rarely exceed, and a part of the smallest second-level
// caches.
constexpr uint64_t kMostBytes = 128 * 1024;

/// What the share of `worker` begins with; nothing where that is not known before the step.
std::span<const uint8_t> share_of(const Stage& stage, const StepShape& shape, uint64_t items, unsigned worker) {
  const uint64_t first = items * worker / shape.threads, last = items * (worker + 1) / shape.threads;
  uint64_t begin = 0; // of the call
  for (const auto& call : stage.calls) {
    const uint64_t end = begin + call->items(shape);
    if (first < end && begin < last) {
      const std::span<const uint8_t> weights = call->weights_of(shape, first - begin, std::min(last, end) - begin);
      return weights.first(std::min<uint64_t>(weights.size(), kMostBytes));
    }
    begin = end;
  }
  return {};
}

} // namespace

WeightsAhead::WeightsAhead(const ResolvedProgram& program, unsigned workers) : workers_(workers) {
  const StepShape shape{0, 1, workers};
  const size_t stages = program.stages.size();
  ahead_.resize((stages + 1) * workers);
  // From behind, twice: what follows the last stage are the first ones of the next step.
  std::vector<std::span<const uint8_t>> next(workers);
  for (size_t i = 2 * stages + 1; i-- > 0;) {
    const size_t number = i % (stages + 1);
    std::copy(next.begin(), next.end(), ahead_.begin() + static_cast<ptrdiff_t>(number * workers));
    if (number == stages)
      continue;
    const Stage& stage = program.stages[number];
    uint64_t items = 0;
    for (const auto& call : stage.calls)
      items += call->items(shape);
    if (stage.draft || !stage.points.empty() || items <= 1) // it may not run, or others wait while one does
      continue;
    std::vector<std::span<const uint8_t>> own(workers);
    for (unsigned worker = 0; worker < workers; ++worker)
      own[worker] = share_of(stage, shape, items, worker);
    if (std::ranges::any_of(own, [](const auto& weights) { return !weights.empty(); }))
      next = std::move(own);
  }
}

} // namespace cortiq::runtime
