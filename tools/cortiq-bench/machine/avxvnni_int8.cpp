#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 12; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m256i sums[kChains];
  __m256i x = _mm256_set1_epi8(1), y = x;
  for (__m256i& sum : sums)
    sum = x;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m256i& sum : sums)
      sum = _mm256_dpbusd_avx_epi32(sum, x, y);
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(sums[0])));
}

} // namespace

const Unit kAvxVnniInt8 = {"avxvnni int8", "int8", "avxvnni", {"avx_vnni"}, kChains * 64, run};

} // namespace cortiq::bench
