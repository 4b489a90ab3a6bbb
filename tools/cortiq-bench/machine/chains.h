#pragma once

// The loop of the units with vectors, compiled in each unit's file for its flags.

#include <cstdint>

namespace cortiq::bench {

/// The sum of `kChains` sums, each of which starts as `first` and becomes step(sum, x, x) in every round. They do not
/// depend on each other: with more of them than a unit's latency times its width, it never waits.
template <int kChains, class Vector, class Factor, class Step, class Add>
inline Vector sum_in_chains(uint64_t rounds, Vector first, Factor x, Step step, Add add) {
  Vector sums[kChains];
  Factor y = x;
  for (Vector& sum : sums)
    sum = first;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (Vector& sum : sums)
      sum = step(sum, x, y);
    __asm__ volatile("" : "+v"(x), "+v"(y)); // else the same in every round
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = add(sums[0], sums[c]);
  return sums[0];
}

} // namespace cortiq::bench
