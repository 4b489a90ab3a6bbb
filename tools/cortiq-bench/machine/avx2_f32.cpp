#include <immintrin.h>

#include "tools/cortiq-bench/machine/chains.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

constexpr int kChains = 12;

uint64_t run(uint64_t rounds) {
  const __m256 sum = sum_in_chains<kChains>(
      rounds, _mm256_set1_ps(1e-3f), _mm256_set1_ps(1e-3f),
      [](__m256 sum, __m256 x, __m256 y) { return _mm256_fmadd_ps(x, y, sum); },
      [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); });
  return static_cast<uint64_t>(_mm256_cvtss_f32(sum) < 0);
}

} // namespace

const Unit kAvx2F32 = {"avx2 fma f32", "f32", "v3 avxvnni", {"avx2", "fma"}, kChains * 16, run};

} // namespace cortiq::bench
