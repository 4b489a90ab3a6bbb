#pragma once

// How fast this machine reads memory: the ceiling that a decode step is held against.

#include <cstdint>

namespace cortiq::runtime {

/// Reading by a number of threads, in GB/s (10^9). All 0 when there is no memory for it.
struct ReadRate {
  unsigned threads = 0;
  uint64_t bytes = 0;    ///< read a pass
  double best = 0;       ///< of all passes
  double median = 0;     ///< of the passes of the fastest loop
  double per_cpu = 0;    ///< best by the processor time of the threads, divided by their number
  uint64_t streams = 0;  ///< the fastest loop: streams a thread,
  bool prefetch = false; ///< with prefetches or without
};

enum class ReadSource {
  kMemory,  ///< large pages where the system has them, first touched by the thread that reads them
  kMapping, ///< a file in the page cache, as artifacts are mapped
};

/// Tries several loops with the widest loads of the machine and reports the fastest. `bytes` 0: four times the last
/// cache and at least 1 GiB, as far as memory allows. Threads are bound to processors while it runs. A mapping is of a
/// temporary file in `folder`, which is gone afterwards.
ReadRate measure_read_rate(unsigned threads, ReadSource source = ReadSource::kMemory, uint64_t bytes = 0,
                           unsigned passes = 9, const char* folder = nullptr);

/// The best rate of reading memory.
double measure_read_bandwidth(unsigned threads);

} // namespace cortiq::runtime
