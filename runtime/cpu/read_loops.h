#pragma once

// Ways to read memory as fast as it can be had. Which is fastest depends on the machine and the number of threads, so
// the measurement tries all.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cortiq::runtime {

constexpr uint64_t kPrefetchDistance = 4096;
constexpr uint64_t kReadGranule = 4096; ///< a stream's length is a multiple of it
constexpr size_t kReadLoopCount = 6;

struct ReadLoop {
  uint64_t streams; ///< pieces of the area that are read side by side
  bool prefetch;
  /// Reads streams x each bytes from `base`, which is aligned to 64. Prefetches go kPrefetchDistance beyond the end.
  uint64_t (*read)(const uint8_t* base, uint64_t each);
};

std::span<const ReadLoop> read_loops_plain();
#if defined(__x86_64__)
std::span<const ReadLoop> read_loops_avx2();
std::span<const ReadLoop> read_loops_avx512();
#endif

/// Those with the widest loads that this machine has.
std::span<const ReadLoop> read_loops();

} // namespace cortiq::runtime
