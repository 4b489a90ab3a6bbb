#include "runtime/cpu/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace cortiq::runtime {
namespace {

/// Reads words with eight independent sums, so that loads and not additions are the limit.
uint64_t read_all(const uint64_t* begin, const uint64_t* end) {
  uint64_t sums[8] = {};
  for (; begin + 8 <= end; begin += 8)
    for (int i = 0; i < 8; ++i)
      sums[i] += begin[i];
  uint64_t sum = 0;
  for (const uint64_t s : sums)
    sum += s;
  return sum;
}

} // namespace

double measure_read_bandwidth(unsigned threads, uint64_t bytes, unsigned passes) {
  threads = std::max(1u, threads);
  const uint64_t each = bytes / threads / 64 * 64;
  void* memory = mmap(nullptr, each * threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || each == 0)
    return 0;
  auto* words = static_cast<uint64_t*>(memory);
  std::atomic<uint64_t> sink{0};
  std::barrier start(threads);
  std::vector<double> best(threads, 0);
  auto work = [&](unsigned index) {
    uint64_t* begin = words + index * (each / 8);
    std::fill(begin, begin + each / 8, index + 1); // the first touch decides where the pages lie
    for (unsigned pass = 0; pass < passes; ++pass) {
      start.arrive_and_wait();
      const auto from = std::chrono::steady_clock::now();
      sink.fetch_add(read_all(begin, begin + each / 8), std::memory_order_relaxed);
      start.arrive_and_wait();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
      best[index] = std::max(best[index], static_cast<double>(each * threads) / seconds * 1e-9);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others)
    thread.join();
  munmap(memory, each * threads);
  return best[0];
}

} // namespace cortiq::runtime
