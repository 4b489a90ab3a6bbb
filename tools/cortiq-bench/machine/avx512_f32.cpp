#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m512 sums[kChains];
  __m512 x = _mm512_set1_ps(1e-3f), y = x;
  for (__m512& sum : sums)
    sum = x;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums)
      sum = _mm512_fmadd_ps(x, y, sum);
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm512_add_ps(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm512_cvtss_f32(sums[0]) < 0);
}

} // namespace

const Unit kAvx512F32 = {"avx512 fma f32", "f32", "avx512vnni avx512vbmi amx", {"avx512f"}, kChains * 32, run};

} // namespace cortiq::bench
