#pragma once

// The largest of a row of logits, in place of the row: what a device sends when a choice needs no more.

#include <cstdint>
#include <span>

namespace cortiq::runtime {

/// What is wanted of a row.
struct TopAsk {
  float temperature = 1; ///< of `sum`
  uint32_t limit = 0;    ///< ids from here on are left out
};

struct TopLogits {
  std::span<const float> values; ///< in no order; of equal ones there may be more among the others
  std::span<const uint32_t> ids; ///< theirs
  float rest = 0;                ///< all other logits are at most this
  float largest = 0;             ///< of all
  double sum = 0;                ///< of exp((logit - largest) / temperature) over all, within kSumError of it
  static constexpr double kSumError = 1e-4;
};

} // namespace cortiq::runtime
