#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 12;

uint64_t run(uint64_t rounds) {
  const __m256i sum = sum_in_chains<kChains>(
      rounds, _mm256_set1_epi8(1), _mm256_set1_epi8(1),
      [](__m256i sum, __m256i x, __m256i y) { return _mm256_dpbusd_avx_epi32(sum, x, y); },
      [](__m256i a, __m256i b) { return _mm256_add_epi32(a, b); });
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(sum)));
}

} // namespace

const Unit kAvxVnniInt8 = {"avxvnni int8", "int8", "avxvnni", {"avx_vnni"}, kChains * 64, run};

} // namespace cortiq::bench
