#include <immintrin.h>

#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16; // independent sums: more than a unit's latency times its width

uint64_t run(uint64_t rounds) {
  __m512i sums[kChains];
  __m512i x = _mm512_set1_epi32(0x01010101), y = x;
  for (__m512i& sum : sums)
    sum = x;
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m512i& sum : sums)
      sum = _mm512_dpbusd_epi32(sum, x, y);
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (int c = 1; c < kChains; ++c)
    sums[0] = _mm512_add_epi32(sums[0], sums[c]);
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sums[0])));
}

} // namespace

const Unit kAvx512VnniInt8 = {"avx512vnni int8",          "int8",        "avx512vnni avx512vbmi",
                              {"avx512f", "avx512_vnni"}, kChains * 128, run};

} // namespace cortiq::bench
