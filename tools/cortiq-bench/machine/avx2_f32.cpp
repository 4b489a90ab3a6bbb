#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 12; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m256 sums[kChains];
  __m256 x = _mm256_set1_ps(1e-3f), y = x;
  for (__m256& sum : sums)
    sum = x;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m256& sum : sums)
      sum = _mm256_fmadd_ps(x, y, sum);
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm256_add_ps(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm256_cvtss_f32(sums[0]) < 0);
}

} // namespace

const Unit kAvx2F32 = {"avx2 fma f32", "f32", "v3 avxvnni", {"avx2", "fma"}, kChains * 16, run};

} // namespace cortiq::bench
