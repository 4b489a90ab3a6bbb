#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 16;

uint64_t run(uint64_t rounds) {
  const __m512 sum = sum_in_chains<kChains>(
      rounds, _mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f),
      [](__m512 sum, __m512 x, __m512 y) { return _mm512_fmadd_ps(x, y, sum); },
      [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); });
  return static_cast<uint64_t>(_mm512_cvtss_f32(sum) < 0);
}

} // namespace

const Unit kAvx512F32 = {"avx512 fma f32", "f32", "avx512vnni avx512vbmi amx", {"avx512f"}, kChains * 32, run};

} // namespace cortiq::bench
