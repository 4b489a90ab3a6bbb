#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16;

uint64_t run(uint64_t rounds) {
  const __m512 sum = sum_in_chains<kChains>(
      rounds, _mm512_setzero_ps(), _mm512_setzero_si512(),
      [](__m512 sum, __m512i x, __m512i y) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
      },
      [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); });
  return static_cast<uint64_t>(_mm512_cvtss_f32(sum) < 0);
}

} // namespace

const Unit kAvx512Bf16 = {"avx512 bf16", "bf16", "", {"avx512f", "avx512_bf16"}, kChains * 64, run};

} // namespace cortiq::bench
