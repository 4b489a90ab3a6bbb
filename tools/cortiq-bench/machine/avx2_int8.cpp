#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 10;

uint64_t run(uint64_t rounds) {
  const __m256i sum = sum_in_chains<kChains>(
      rounds, _mm256_set1_epi8(1), _mm256_set1_epi8(1),
      [](__m256i sum, __m256i x, __m256i y) { // All products are the same: as an intrinsic, one would serve all sums.
        __m256i product;
        __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(product) : "x"(x), "x"(y));
        return _mm256_add_epi32(sum, _mm256_madd_epi16(product, y));
      },
      [](__m256i a, __m256i b) { return _mm256_add_epi32(a, b); });
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(sum)));
}

} // namespace

const Unit kAvx2Int8 = {"avx2 maddubs int8", "int8", "v3", {"avx2"}, kChains * 64, run};

} // namespace cortiq::bench
