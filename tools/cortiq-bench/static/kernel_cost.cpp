#include "tools/cortiq-bench/static/kernel_cost.h"

#include <algorithm>
#include <string_view>

namespace cortiq::bench {
namespace {

constexpr double kWeights = 32;

class Counter {
public:
  explicit Counter(const ListedKernel& kernel) : kernel_(kernel) {}

  std::optional<KernelCost> run() {
    int groups = -1;
    for (size_t i = 0; i < kernel_.loops.size(); ++i) {
      const int number = static_cast<int>(i);
      if (has_unknown(number) && kernel_.loops[i].iterations != 0)
        return std::nullopt;
      if (kernel_.loops[i].parent != -1 || kernel_.loops[i].iterations != 0)
        continue;
      if (groups >= 0)
        return std::nullopt;
      groups = number;
    }
    if (groups < 0)
      return std::nullopt;
    const ListedLoop& body = kernel_.loops[static_cast<size_t>(groups)];
    walk(body, groups, 1);
    if (cost_.strands.empty() && !has_unknown(groups))
      flatten(body, groups, cost_.strands.emplace_back(Strand{.body = {}, .iterations = 1}).body);
    cost_.products =
        static_cast<double>(kernel_.rows) * static_cast<double>(kernel_.columns * kernel_.tokens) / kWeights;
    for (const Strand& strand : cost_.strands) {
      cost_.instructions += strand.iterations * static_cast<double>(strand.body.size());
      cost_.loads +=
          strand.iterations * static_cast<double>(std::count_if(strand.body.begin(), strand.body.end(), reads_memory));
    }
    for (double* sum : {&cost_.instructions, &cost_.loads, &cost_.all})
      *sum /= cost_.products;
    return std::move(cost_);
  }

private:
  /// Whether a loop of unknown count lies in loop `number`.
  bool has_unknown(int number) const {
    return std::any_of(kernel_.loops.begin(), kernel_.loops.end(), [&](const ListedLoop& loop) {
      int outer = loop.parent;
      while (outer >= 0 && outer != number)
        outer = kernel_.loops[static_cast<size_t>(outer)].parent;
      return outer == number && loop.iterations == 0;
    });
  }

  /// Calls `inside(loop, number)` for each loop directly in `outer` and `between(i)` for each instruction that is in
  /// none.
  template <class Inside, class Between>
  void split(const ListedLoop& outer, int number, Inside inside, Between between) const {
    size_t at = outer.begin;
    for (size_t i = 0; i < kernel_.loops.size(); ++i) {
      const ListedLoop& loop = kernel_.loops[i];
      if (loop.parent != number || loop.begin < outer.begin || loop.end > outer.end)
        continue;
      for (; at < loop.begin; ++at)
        between(at);
      inside(loop, static_cast<int>(i));
      at = loop.end;
    }
    for (; at < outer.end; ++at)
      between(at);
  }

  /// What one pass of the body of a loop of unknown count runs, `times` in all.
  void walk(const ListedLoop& body, int number, double times) {
    split(
        body, number,
        [&](const ListedLoop& loop, int inner) {
          if (loop.iterations == 0)
            return walk(loop, inner, times * static_cast<double>(kernel_.tokens) / static_cast<double>(loop.step));
          Strand strand;
          flatten(loop, inner, strand.body);
          strand.iterations = times * static_cast<double>(loop.iterations);
          cost_.all += strand.iterations * static_cast<double>(strand.body.size());
          cost_.strands.push_back(std::move(strand));
        },
        [&](size_t) { cost_.all += times; });
  }

  void flatten(const ListedLoop& loop, int number, std::vector<std::string>& out) const {
    split(
        loop, number,
        [&](const ListedLoop& inner, int i) {
          for (uint64_t times = 0; times < inner.iterations; ++times)
            flatten(inner, i, out);
        },
        [&](size_t i) { out.push_back(kernel_.instructions[i]); });
  }

  const ListedKernel& kernel_;
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

std::optional<KernelCost> count_kernel(const ListedKernel& kernel) {
  return Counter(kernel).run();
}

} // namespace cortiq::bench
