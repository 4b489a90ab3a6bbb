#pragma once

// How fast this machine reads memory: the ceiling that a decode step is held against.

#include <cstdint>

namespace cortiq::runtime {

/// Best of several passes of `threads` threads reading `bytes` bytes each pass, in GB/s (10^9). 0 when there is no
/// memory.
double measure_read_bandwidth(unsigned threads, uint64_t bytes = uint64_t{512} << 20, unsigned passes = 5);

} // namespace cortiq::runtime
