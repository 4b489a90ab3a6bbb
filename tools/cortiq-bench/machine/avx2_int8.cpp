#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 10; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m256i sums[kChains];
  __m256i x = _mm256_set1_epi8(1), y = x;
  for (__m256i& sum : sums)
    sum = x;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m256i& sum : sums) {
      // All products are the same: as an intrinsic, one would serve all sums.
      __m256i product;
      __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(product) : "x"(x), "x"(y));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(product, y));
    }
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(sums[0])));
}

} // namespace

const Unit kAvx2Int8 = {"avx2 maddubs int8", "int8", "v3", {"avx2"}, kChains * 64, run};

} // namespace cortiq::bench
