#pragma once

// What a worker that waits for the others can do meanwhile: ask memory for the weights that its share of the next stage
// begins with.

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// For each stage and worker the weights that come next, for a step of one token. It is made once, from what never
/// changes, so that a late worker may read it whatever is planned meanwhile.
class WeightsAhead {
public:
  /// Nothing to ask for.
  WeightsAhead() = default;
  WeightsAhead(const ResolvedProgram& program, unsigned workers);

  /// What `worker` reads first of the stages behind `stage`; of those of the next step when it is the number of stages.
  std::span<const uint8_t> of(uint64_t stage, unsigned worker) const {
    return ahead_.empty() ? std::span<const uint8_t>() : ahead_[stage * workers_ + worker];
  }

private:
  unsigned workers_ = 0;
  std::vector<std::span<const uint8_t>> ahead_; ///< by stage, then by worker
};

/// Asks for `weights` bit by bit.
class AskAhead {
public:
  explicit AskAhead(std::span<const uint8_t> weights) : weights_(weights) {}
  /// Asks for a little more; false when there is no more.
  bool more() {
    constexpr uint64_t kLine = 64, kLines = 2; // so few that who asks hears soon that the wait is over
    if (asked_ >= weights_.size())
      return false;
    for (uint64_t i = 0; i < kLines; ++i, asked_ += kLine)
      __builtin_prefetch(weights_.data() + asked_, /*rw=*/0, /*locality=*/2);
    return true;
  }

private:
  std::span<const uint8_t> weights_;
  uint64_t asked_ = 0;
};

} // namespace cortiq::runtime
