#include "tools/cortiq-bench/static/kernel_cost.h"

#include <algorithm>
#include <string_view>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::bench {
namespace {

constexpr double kWeights = 32;
constexpr uint64_t kManyTokens = 16; // from which kernels take several groups at a time

class Counter {
public:
  explicit Counter(const ListedKernel& kernel)
      : kernel_(kernel), groups_(kernel.tokens < kManyTokens ? 1 : formats::kTileKernelGroups) {}

  KernelCost run() {
    for (size_t i = 0; i < kernel_.loops.size(); ++i)
      if (kernel_.loops[i].parent == -1 && (kernel_.loops[i].limit != LoopLimit::kIterations || !fixed(i)))
        walk(i, 1);
    cost_.products =
        static_cast<double>(kernel_.rows * groups_) * static_cast<double>(kernel_.columns * kernel_.tokens) / kWeights;
    for (const Strand& strand : cost_.strands) {
      cost_.instructions += strand.iterations * static_cast<double>(strand.body.size());
      cost_.loads +=
          strand.iterations * static_cast<double>(std::count_if(strand.body.begin(), strand.body.end(), reads_memory));
    }
    cost_.all += cost_.instructions;
    for (double* sum : {&cost_.instructions, &cost_.loads, &cost_.all})
      *sum /= cost_.products;
    return std::move(cost_);
  }

private:
  double count(const ListedLoop& loop) const {
    const auto ceil = [&](uint64_t limit) { return static_cast<double>((limit + loop.step - 1) / loop.step); };
    switch (loop.limit) {
    case LoopLimit::kIterations:
      return static_cast<double>(loop.iterations);
    case LoopLimit::kGroups:
      return ceil(groups_);
    case LoopLimit::kTokens:
      return ceil(kernel_.tokens);
    case LoopLimit::kOther:
      break;
    }
    return 0;
  }

  bool has_loops(size_t number) const {
    return std::any_of(kernel_.loops.begin(), kernel_.loops.end(),
                       [&](const ListedLoop& loop) { return loop.parent == static_cast<int>(number); });
  }

  /// Whether all loops inside of loop `number` have known numbers of iterations.
  bool fixed(size_t number) const {
    for (size_t i = 0; i < kernel_.loops.size(); ++i)
      if (kernel_.loops[i].parent == static_cast<int>(number) &&
          (kernel_.loops[i].limit != LoopLimit::kIterations || !fixed(i)))
        return false;
    return true;
  }

  /// Calls `inside(number)` for each loop directly in `outer` and `between(i)` for each instruction that is in none.
  template <class Inside, class Between>
  void split(size_t outer, Inside inside, Between between) const {
    size_t at = kernel_.loops[outer].begin;
    for (size_t i = 0; i < kernel_.loops.size(); ++i) {
      const ListedLoop& loop = kernel_.loops[i];
      if (loop.parent != static_cast<int>(outer))
        continue;
      for (; at < loop.begin; ++at)
        between(at);
      inside(i);
      at = loop.end;
    }
    for (; at < kernel_.loops[outer].end; ++at)
      between(at);
  }

  void walk(size_t number, double times) {
    const ListedLoop& loop = kernel_.loops[number];
    times *= count(loop);
    if (times == 0)
      return;
    if (loop.limit == LoopLimit::kIterations ? fixed(number) : !has_loops(number)) {
      Strand& strand = cost_.strands.emplace_back();
      flatten(number, strand.body);
      strand.iterations = times;
      return;
    }
    split(number, [&](size_t inner) { walk(inner, times); }, [&](size_t) { cost_.all += times; });
  }

  void flatten(size_t number, std::vector<std::string>& out) const {
    split(
        number,
        [&](size_t inner) {
          for (uint64_t i = 0; i < kernel_.loops[inner].iterations; ++i)
            flatten(inner, out);
        },
        [&](size_t i) { out.push_back(kernel_.instructions[i]); });
  }

  const ListedKernel& kernel_;
  const uint64_t groups_;
  KernelCost cost_;
};

} // namespace

bool reads_memory(const std::string& instruction) {
  const std::string_view text = instruction;
  const size_t memory = text.find("ptr [");
  const std::string_view word = text.substr(0, text.find(' '));
  if (word.starts_with("ld")) // AArch64, constants by their label too
    return true;
  if (memory == std::string_view::npos || word.starts_with("prefetch"))
    return false;
  // x86, for on AArch64 nothing else does. In Intel's syntax the result comes first: moves to memory only write it.
  const bool first = text.substr(0, memory).find(',') == std::string_view::npos;
  return !first || word.find("mov") == std::string_view::npos;
}

KernelCost count_kernel(const ListedKernel& kernel) {
  return Counter(kernel).run();
}

} // namespace cortiq::bench
