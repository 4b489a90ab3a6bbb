#include "runtime/memory/placement.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <system_error>
#include <thread>

namespace cortiq::runtime {

std::vector<NumaNode> placement_nodes(const Placement& placement) {
  if (!placement.numa)
    return {};
  std::vector<NumaNode> nodes = read_numa_nodes();
  if (nodes.size() < 2)
    nodes.clear();
  return nodes;
}

void place(void* base, uint64_t bytes, const Placement& placement) {
  if (!base)
    return;
  if (placement.large_pages)
    madvise(base, bytes, MADV_HUGEPAGE);
  if (const std::vector<NumaNode> nodes = placement_nodes(placement); !nodes.empty())
    interleave(base, bytes, nodes);
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
