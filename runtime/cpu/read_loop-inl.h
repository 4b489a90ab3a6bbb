// One way to read memory, compiled once an instruction set: the including file has its own flags.
// Everything here has internal linkage, so that no other unit can be given code for a wider instruction set.

#include <cstdint>

#include "runtime/cpu/read_loops.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kStep = 4 * kLine; // of a stream at a time

/// Reads `each` bytes of kStreams streams, `each` bytes apart, side by side. What is read is folded into one word, so
/// that no load can be left out.
template <class Vector, uint64_t kStreams, bool kPrefetch>
uint64_t read_streams(const uint8_t* base, uint64_t each) {
  constexpr uint64_t kLoads = kStep / sizeof(Vector);
  Vector sums[8] = {};
  for (uint64_t at = 0; at < each; at += kStep)
    for (uint64_t s = 0; s < kStreams; ++s) {
      const uint8_t* p = base + s * each + at;
      if constexpr (kPrefetch)
        for (uint64_t line = 0; line < kStep; line += kLine)
          __builtin_prefetch(p + kPrefetchDistance + line);
      for (uint64_t i = 0; i < kLoads; ++i)
        sums[i % 8] |= *reinterpret_cast<const Vector*>(p + i * sizeof(Vector));
    }
  Vector all = sums[0];
  for (int i = 1; i < 8; ++i)
    all |= sums[i];
  uint64_t out = 0;
  for (uint64_t i = 0; i < sizeof(Vector) / sizeof(uint64_t); ++i)
    out |= all[i];
  return out;
}

template <class Vector>
constexpr ReadLoop kReadLoops[kReadLoopCount] = {
    {1, false, read_streams<Vector, 1, false>}, {1, true, read_streams<Vector, 1, true>},
    {4, false, read_streams<Vector, 4, false>}, {4, true, read_streams<Vector, 4, true>},
    {8, false, read_streams<Vector, 8, false>}, {8, true, read_streams<Vector, 8, true>},
};

} // namespace
} // namespace cortiq::runtime
