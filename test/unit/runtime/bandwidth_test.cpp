#include "runtime/cpu/bandwidth.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/cpu/bound_threads.h"
#include "runtime/cpu/read_loops.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kArea = uint64_t{4} << 20;

TEST(ReadLoops, ReadEveryLine) {
  std::vector<uint8_t> memory(8 * 2 * kReadGranule + 64 + kPrefetchDistance);
  uint8_t* base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  for (const std::span<const ReadLoop> loops : {read_loops_plain(), read_loops()}) {
    ASSERT_EQ(loops.size(), kReadLoopCount);
    for (const ReadLoop& loop : loops) {
      const uint64_t each = 2 * kReadGranule;
      for (uint64_t at = 0; at < loop.streams * each; at += 192) {
        std::memset(base, 0, loop.streams * each);
        EXPECT_EQ(loop.read(base, each), 0u);
        base[at] = 1;
        EXPECT_NE(loop.read(base, each), 0u) << loop.streams << " streams, byte " << at;
      }
    }
  }
}

TEST(ReadRate, MeasuresMemoryAndMappings) {
  for (const unsigned threads : {1u, 3u})
    for (const ReadSource source : {ReadSource::kMemory, ReadSource::kMapping}) {
      const ReadRate rate = measure_read_rate(threads, source, kArea, 2);
      EXPECT_EQ(rate.threads, threads);
      EXPECT_LE(rate.bytes, kArea);
      EXPECT_GT(rate.bytes, kArea / 2);
      EXPECT_GT(rate.median, 0);
      EXPECT_GE(rate.best, rate.median);
      EXPECT_GT(rate.per_cpu, 0);
    }
}

TEST(ReadRate, IsZeroWithoutAPlaceForTheFile) {
  EXPECT_EQ(measure_read_rate(1, ReadSource::kMapping, kArea, 1, "/no/such/folder").best, 0);
}

TEST(BoundThreads, RunAllAtOnce) {
  std::atomic<unsigned> arrived{0};
  const bool ran = run_bound(5, [&](unsigned) {
    arrived.fetch_add(1);
    while (arrived.load() != 5)
      ;
  });
  EXPECT_TRUE(ran);
}

} // namespace
} // namespace cortiq::runtime
