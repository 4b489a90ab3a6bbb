#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16;

uint64_t run(uint64_t rounds) {
  const __m512i sum = sum_in_chains<kChains>(
      rounds, _mm512_set1_epi32(0x01010101), _mm512_set1_epi32(0x01010101),
      [](__m512i sum, __m512i x, __m512i y) { return _mm512_dpbusd_epi32(sum, x, y); },
      [](__m512i a, __m512i b) { return _mm512_add_epi32(a, b); });
  return static_cast<uint64_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum)));
}

} // namespace

const Unit kAvx512VnniInt8 = {"avx512vnni int8",          "int8",        "avx512vnni avx512vbmi",
                              {"avx512f", "avx512_vnni"}, kChains * 128, run};

} // namespace cortiq::bench
