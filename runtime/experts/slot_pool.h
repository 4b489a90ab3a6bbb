#pragma once

// Places in memory for units of about one size, and which of them to give up next.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/session/reserved_memory.h"

namespace cortiq::runtime {

/// Not thread-safe: the store's lock guards it. Every place has a rank; the lowest goes first.
class SlotPool {
public:
  static constexpr double kFree = -std::numeric_limits<double>::infinity();
  static constexpr double kBusy = std::numeric_limits<double>::infinity(); ///< being read or in use: never given up
  static constexpr uint32_t kNobody = UINT32_MAX;

  /// Address space for `units` places of `slot_bytes` (a multiple of a page); empty() when the system refused.
  SlotPool(uint64_t slot_bytes, uint32_t units);

  bool empty() const { return memory_.data() == nullptr; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint32_t units() const { return static_cast<uint32_t>(ranks_.size()); }
  uint32_t limit() const { return limit_; }
  uint8_t* address(uint32_t slot) const { return memory_.data() + slot * slot_bytes_; }
  uint32_t holder(uint32_t slot) const { return holders_[slot]; }
  void set_rank(uint32_t slot, double rank) { ranks_[slot] = rank; }

  /// The free place, or else that of the lowest rank, where that is below `bound`. Its holder is the caller's to tell.
  std::optional<uint32_t> lowest(double bound) const;
  void give(uint32_t slot, uint32_t unit) {
    holders_[slot] = unit;
    ranks_[slot] = kBusy;
  }
  void clear(uint32_t slot) {
    holders_[slot] = kNobody;
    ranks_[slot] = kFree;
  }

  /// Places from `limit` on are not handed out any more.
  void set_limit(uint32_t limit) { limit_ = limit; }
  /// Gives the memory of a place behind the limit back; it must be free.
  void drop(uint32_t slot);

private:
  uint64_t slot_bytes_;
  ReservedMemory memory_;
  uint32_t limit_ = 0;
  std::vector<double> ranks_;
  std::vector<uint32_t> holders_;
};

} // namespace cortiq::runtime
