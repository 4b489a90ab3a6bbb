#pragma once

// What a session holds, by layer and position, wherever its memory stands: the way in and out for saved sessions.

#include <cstdint>
#include <functional>
#include <span>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// Positions of a cache that stand together.
inline constexpr uint64_t kKvGroupPositions = 16;

/// Sixteen positions of one head, in the encoding of KvShape: key_group_bytes() and 16 * value_row_bytes().
struct KvGroupPlace {
  uint8_t* keys = nullptr;
  uint8_t* values = nullptr;
};

/// A session's memory behind its first `position` tokens. Valid until the session's next call.
struct SessionState {
  uint64_t position = 0;
  /// How far the caches were written, `position` or more: rings have lost what stood a ring before it.
  uint64_t furthest = 0;
  KvType kv_type = KvType::kF32;
  std::span<const KvShape> layers;
  /// Where positions [16 * group, 16 * group + 16) of a layer's head stand. In a ring two groups share a place.
  std::function<KvGroupPlace(uint64_t layer, uint64_t head, uint64_t group)> place;
  /// Where tokens of prompts and generated ones take turns, ascending; a prompt's come first.
  std::vector<uint64_t> turns;
  std::span<const uint64_t> state_sizes; ///< numbers of each recurrent state
  std::span<float* const> states;

  /// The first position that layer `shape` still has.
  uint64_t first(const KvShape& shape) const {
    return shape.ring != 0 && furthest > shape.ring ? furthest - shape.ring : 0;
  }
};

/// Copies positions [first, last) of a group, 0 to 16, and nothing else of it.
void copy_positions(const KvShape& shape, KvType type, KvGroupPlace to, KvGroupPlace from, uint64_t first,
                    uint64_t last);

/// Whether all keys and values of a group are numbers; infinities and NaN, which a cache never holds, would reach
/// positions that are masked.
bool all_finite(const KvShape& shape, KvType type, KvGroupPlace group);
bool all_finite(std::span<const float> values);

} // namespace cortiq::runtime
