#pragma once

// The arithmetic units that kernels use, and how fast they can go when nothing is read.

#include <cstdint>
#include <string_view>
#include <vector>

namespace cortiq::bench {

/// One unit of one instruction set.
struct Unit {
  std::string_view name;            ///< "avx512vnni int8"
  std::string_view kind;            ///< "f32", "bf16", "int8": what is multiplied
  std::string_view isas;            ///< last words of the names of kernels that use it, between spaces
  std::string_view features[2];     ///< that the processor must have; empty = none
  uint64_t operations;              ///< a round; a multiplication and its addition are two
  uint64_t (*run)(uint64_t rounds); ///< on the calling thread; what it returns keeps the work from being left out
};

/// Those that this machine has and its system lets this process use (for AMX the kernel is asked here).
std::vector<const Unit*> usable_units();

/// Names of units of this processor family that the machine lacks, for tables.
std::vector<std::string_view> missing_units();

/// Best of several timings of `threads` threads, in 10^12 operations a second, each a twentieth of a second; 0 when
/// the system refuses a thread.
double measure_peak(const Unit& unit, unsigned threads);

// One row each, in a file of its own with flags of its own.
extern const Unit kPlainF32;
#if defined(__x86_64__)
extern const Unit kAvx2F32, kAvx512F32, kAvx2Int8, kAvxVnniInt8, kAvx512VnniInt8, kAvx512Bf16, kAmxInt8, kAmxBf16;
#endif

} // namespace cortiq::bench
