#include "runtime/cpu/read_loop-inl.h"

namespace cortiq::runtime {

std::span<const ReadLoop> read_loops_avx512() {
  using Vector = uint64_t __attribute__((vector_size(64), may_alias));
  return kReadLoops<Vector>;
}

} // namespace cortiq::runtime
