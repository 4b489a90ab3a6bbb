#include "tools/cortiq-bench/barrier_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "runtime/executor/executor.h"

namespace cortiq::bench {
namespace {

constexpr int kStages = 256;
constexpr int kSteps = 20;
constexpr int kRuns = 9;

/// Items without work.
class EmptyCall final : public runtime::Call {
public:
  explicit EmptyCall(uint64_t items) : items_(items) {}
  runtime::CallInfo info() const override { return {"empty", 0, 0, 0}; }
  uint64_t items(const runtime::StepShape&) const override { return items_; }
  void run(const runtime::StepContext&, const runtime::StepShape&, uint64_t, uint64_t, uint8_t*) const override {}

private:
  uint64_t items_;
};

struct Times {
  double best, median;
};

/// Nanoseconds a stage of `items`.
Times measure(unsigned threads, uint64_t items) {
  runtime::ResolvedProgram program;
  for (int i = 0; i < kStages; ++i) {
    program.stages.emplace_back();
    program.stages.back().calls.push_back(std::make_unique<EmptyCall>(items));
    program.stages.back().calls.back()->number = program.call_count++;
  }
  runtime::Executor executor(program, threads, false);
  const runtime::StepContext context;
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    executor.step(context, 1, 0, 1); // the workers are awake
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < kSteps; ++step)
      executor.step(context, 1, 0, 1);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    runs.push_back(took.count() / (kSteps * kStages));
  }
  std::sort(runs.begin(), runs.end());
  return {runs.front(), runs[runs.size() / 2]};
}

} // namespace

void report_barriers(const std::vector<unsigned>& threads) {
  std::printf("nanoseconds a stage without work, best and median of %d runs of %d steps of %d stages\n", kRuns, kSteps,
              kStages);
  std::printf("threads     1 item          1 item a thread     16 items a thread\n");
  for (const unsigned count : threads) {
    const Times serial = measure(count, 1);
    const Times even = count > 1 ? measure(count, count) : serial;
    const Times many = measure(count, uint64_t{16} * count);
    std::printf("%7u  %7.0f %7.0f    %7.0f %7.0f       %7.0f %7.0f\n", count, serial.best, serial.median, even.best,
                even.median, many.best, many.median);
  }
}

} // namespace cortiq::bench
