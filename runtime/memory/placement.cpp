#include "runtime/memory/placement.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <system_error>
#include <thread>

namespace cortiq::runtime {

Placement placement_of(std::string_view pages, std::string_view numa) {
  return {.large_pages = pages == "large", .numa = numa != "off"};
}

NumaPlan numa_plan(const Placement& placement) {
  return placement.numa ? plan_numa(read_numa_nodes(placement.root)) : NumaPlan();
}

void place(void* base, uint64_t bytes, const Placement& placement) {
  if (!base)
    return;
  if (placement.large_pages)
    madvise(base, bytes, MADV_HUGEPAGE);
  if (const NumaPlan plan = numa_plan(placement); !plan.memory.empty())
    interleave(base, bytes, plan.memory);
}

void copy_parallel(std::span<const uint8_t> from, uint8_t* to, unsigned threads) {
  constexpr uint64_t kPiece = uint64_t{8} << 20;
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    for (uint64_t at; (at = next.fetch_add(kPiece)) < from.size();)
      std::memcpy(to + at, from.data() + at, std::min<uint64_t>(kPiece, from.size() - at));
  };
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < threads; ++i)
      others.emplace_back(work);
  } catch (const std::system_error&) { // fewer do
  }
  work();
  for (std::thread& other : others)
    other.join();
}

} // namespace cortiq::runtime
