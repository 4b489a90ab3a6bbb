#pragma once

// What is asked of neighbouring stages before one does work of the other.

#include <cstdint>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// Bytes of the arena.
struct ArenaRange {
  uint64_t begin = 0, end = 0;
  bool operator==(const ArenaRange&) const = default;
  bool meets(const ArenaRange& other) const { return begin < other.end && other.begin < end; }
};
/// Those of `slot`, for all tokens.
inline ArenaRange arena_range(const SlotRef& slot, uint64_t max_batch) {
  return {slot.offset, slot.offset + slot.stride * max_batch};
}

/// The calls of the stage that are a `Kind`; none where a skill chooses between calls, or a mask cuts them.
template <class Kind>
std::vector<Kind*> free_calls(const Stage& stage) {
  std::vector<Kind*> found;
  for (const auto& call : stage.calls)
    if (auto* one = dynamic_cast<Kind*>(call.get())) {
      if (!stage.points.empty() || call->mask.kind != MaskBits::Kind::kNone || call->gate)
        return {};
      found.push_back(one);
    }
  return found;
}

inline bool run_together(const Stage& a, const Stage& b) {
  return a.head == b.head && a.stream == b.stream && a.draft == b.draft;
}

} // namespace cortiq::runtime
