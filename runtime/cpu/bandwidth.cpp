#include "runtime/cpu/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/cpu/bound_threads.h"
#include "runtime/cpu/limits.h"
#include "runtime/cpu/read_loops.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kLargePage = uint64_t{2} << 20;
constexpr uint64_t kLeastBytes = uint64_t{1} << 30;
constexpr uint64_t kMostBytes = uint64_t{8} << 30;
constexpr unsigned kTries = 2; // passes of a loop before the fastest is chosen

/// MemAvailable of /proc/meminfo, within the limit of the control group.
uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0, available = 0;
  while (file >> key >> kib && std::getline(file, unit))
    if (key == "MemAvailable:")
      available = kib * 1024;
  const uint64_t limit = read_cpu_limits().memory_limit;
  return limit != 0 ? std::min(available, limit) : available;
}

uint64_t default_bytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE));
#else
  const long cache = 0;
#endif
  const uint64_t wanted = std::clamp(4 * static_cast<uint64_t>(cache), kLeastBytes, kMostBytes);
  return std::min(wanted, available_memory() / 4);
}

/// An area of pages, in memory or of a file that has no name.
class Area {
public:
  Area(ReadSource source, uint64_t bytes, const char* folder) : bytes_(bytes) {
    if (bytes == 0)
      return;
    if (source == ReadSource::kMemory) {
      // Room to begin at a large page, and for the last prefetches.
      mapped_ = bytes + 2 * kLargePage;
      memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory_ == MAP_FAILED)
        return;
      madvise(memory_, mapped_, MADV_HUGEPAGE);
      base_ =
          reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(memory_) + kLargePage - 1) / kLargePage * kLargePage);
    } else {
      map_file(folder);
    }
  }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;
  ~Area() {
    if (memory_ != MAP_FAILED)
      munmap(memory_, mapped_);
  }
  uint8_t* base() const { return base_; }

private:
  void map_file(const char* folder) {
    std::string path = std::string(folder) + "/cortiq-read-XXXXXX";
    struct statvfs disk{};
    if (statvfs(folder, &disk) != 0 || disk.f_bavail * disk.f_frsize < 2 * bytes_)
      return;
    const int file = mkstemp(path.data());
    if (file < 0)
      return;
    unlink(path.c_str());
    mapped_ = bytes_ + kPrefetchDistance;
    std::vector<uint8_t> piece(kLargePage, 1);
    bool written = true;
    for (uint64_t at = 0; at < mapped_ && written; at += piece.size()) {
      const uint64_t count = std::min<uint64_t>(piece.size(), mapped_ - at);
      std::memset(piece.data(), static_cast<int>(at >> 21) + 1, piece.size());
      written = write(file, piece.data(), count) == static_cast<ssize_t>(count);
    }
    if (written)
      memory_ = mmap(nullptr, mapped_, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory_ != MAP_FAILED)
      base_ = static_cast<uint8_t*>(memory_);
  }

  void* memory_ = MAP_FAILED;
  uint8_t* base_ = nullptr;
  uint64_t bytes_, mapped_ = 0;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// What a thread notes of one pass.
struct Pass {
  double begin = 0, end = 0, cpu = 0;
};

struct Rate {
  double wall = 0, cpu = 0;
};

Rate rate_of(const std::vector<std::vector<Pass>>& notes, size_t pass, uint64_t bytes) {
  double begin = 1e300, end = 0, cpu = 0;
  for (const std::vector<Pass>& thread : notes) {
    begin = std::min(begin, thread[pass].begin);
    end = std::max(end, thread[pass].end);
    cpu += thread[pass].cpu;
  }
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  return {gigabytes / (end - begin), cpu > 0 ? gigabytes / cpu : 0};
}

} // namespace

ReadRate measure_read_rate(unsigned threads, ReadSource source, uint64_t bytes, unsigned passes, const char* folder) {
  threads = std::max(1u, threads);
  passes = std::max(1u, passes);
  ReadRate out;
  out.threads = threads;
  if (bytes == 0)
    bytes = default_bytes();
  const uint64_t grain = 8 * kReadGranule; // of a thread: whole granules in up to eight streams
  const uint64_t each = std::max(grain, bytes / threads / grain * grain);
  const char* place = folder ? folder : std::getenv("TMPDIR");
  const Area area(source, each * threads, place && *place ? place : "/tmp");
  if (!area.base())
    return out;
  out.bytes = each * threads;

  const std::span<const ReadLoop> loops = read_loops();
  const size_t tries = loops.size() * kTries;
  std::vector<std::vector<Pass>> notes(threads, std::vector<Pass>(tries + passes));
  std::atomic<uint64_t> sink{0};
  size_t fastest = 0;
  std::barrier start(threads);
  const bool ran = run_bound(threads, [&](unsigned index) {
    const uint8_t* begin = area.base() + index * each;
    if (source == ReadSource::kMemory)
      std::memset(area.base() + index * each, static_cast<int>(index) + 1, each); // the first touch places the pages
    else
      sink.fetch_or(loops[0].read(begin, each), std::memory_order_relaxed); // pages enter the process's tables
    for (size_t pass = 0; pass < tries + passes; ++pass) {
      if (pass == tries && index == 0)
        for (size_t i = 0; i < tries; ++i) {
          const auto rate = [&](size_t at) { return rate_of(notes, at, out.bytes).wall; };
          if (rate(i) > rate(fastest * kTries) && rate(i) > rate(fastest * kTries + kTries - 1))
            fastest = i / kTries;
        }
      start.arrive_and_wait();
      const ReadLoop& loop = loops[pass < tries ? pass / kTries : fastest];
      Pass& note = notes[index][pass];
      const double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      note.begin = seconds_of(CLOCK_MONOTONIC);
      sink.fetch_or(loop.read(begin, each / loop.streams), std::memory_order_relaxed);
      note.end = seconds_of(CLOCK_MONOTONIC);
      note.cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
      start.arrive_and_wait();
    }
  });
  if (!ran)
    return {threads};
  std::vector<double> rates;
  for (size_t pass = 0; pass < tries + passes; ++pass) {
    const Rate rate = rate_of(notes, pass, out.bytes);
    out.best = std::max(out.best, rate.wall);
    out.per_cpu = std::max(out.per_cpu, rate.cpu);
    if (pass >= tries)
      rates.push_back(rate.wall);
  }
  std::sort(rates.begin(), rates.end());
  out.median = rates[rates.size() / 2];
  out.streams = loops[fastest].streams;
  out.prefetch = loops[fastest].prefetch;
  return out;
}

double measure_read_bandwidth(unsigned threads) {
  return measure_read_rate(threads).best;
}

} // namespace cortiq::runtime
