#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m512 sums[kChains];
  __m512i x = _mm512_setzero_si512(), y = x;
  for (__m512& sum : sums)
    sum = _mm512_setzero_ps();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums)
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm512_add_ps(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm512_cvtss_f32(sums[0]) < 0);
}

} // namespace

const Unit kAvx512Bf16 = {"avx512 bf16", "bf16", "", {"avx512f", "avx512_bf16"}, kChains * 64, run};

} // namespace cortiq::bench
