#include "tools/cortiq-bench/machine/unit.h"

// What a compiler makes of vectors of four floats for the oldest processor of the family.

namespace cortiq::bench {
namespace {

using Vector = float __attribute__((vector_size(16)));
constexpr int kChains = 8;

uint64_t run(uint64_t rounds) {
  Vector sums[kChains] = {};
  Vector x = {1, 1, 1, 1};
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (Vector& sum : sums)
      sum = sum * x + x;
#if defined(__x86_64__)
    __asm__ volatile("" : "+x"(x));
#else
    __asm__ volatile("" : "+w"(x));
#endif
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] += sums[c];
  return static_cast<uint64_t>(sums[0][0] < 0);
}

} // namespace

const Unit kPlainF32 = {"plain f32", "f32", "", {}, kChains * 4 * 2, run};

} // namespace cortiq::bench
