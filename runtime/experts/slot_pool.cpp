#include "runtime/experts/slot_pool.h"

#include <sys/mman.h>

namespace cortiq::runtime {

SlotPool::SlotPool(uint64_t slot_bytes, uint32_t units)
    : slot_bytes_(slot_bytes), memory_(slot_bytes * units), ranks_(units, kFree), holders_(units, kNobody) {
  // Large pages make reading into fresh memory cheap; where there are none, nothing changes.
  if (!empty())
    madvise(memory_.data(), memory_.bytes(), MADV_HUGEPAGE);
}

std::optional<uint32_t> SlotPool::lowest(double bound) const {
  std::optional<uint32_t> best;
  for (uint32_t slot = 0; slot < limit_ && bound > kFree; ++slot)
    if (ranks_[slot] < bound) {
      bound = ranks_[slot];
      best = slot;
    }
  return best;
}

void SlotPool::drop(uint32_t slot) {
  madvise(address(slot), slot_bytes_, MADV_DONTNEED);
}

} // namespace cortiq::runtime
