#include "runtime/cpu/read_loops.h"

#include "runtime/cpu/features.h"

namespace cortiq::runtime {

std::span<const ReadLoop> read_loops() {
#if defined(__x86_64__)
  const CpuState cpu = read_cpu_state();
  if (feature_state("avx512f", cpu) == FeatureState::kUsable)
    return read_loops_avx512();
  if (feature_state("avx2", cpu) == FeatureState::kUsable)
    return read_loops_avx2();
#endif
  return read_loops_plain();
}

} // namespace cortiq::runtime
