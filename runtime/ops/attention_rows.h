#pragma once

// What the inner part of attention works on.

#include <cstdint>

#include "runtime/executor/kv_blocks.h"

namespace cortiq::runtime {

inline constexpr uint64_t kAttentionBlock = kPositionBlock;
/// Positions whose keys and values, 256 KiB of a usual head, an item reads: short enough to share out a context of two
/// thousand, long enough that adding up costs little (of 256 it cost one thread 6 %).
inline constexpr uint64_t kAttentionChunk = 8 * kAttentionBlock;

/// One query head of one token.
struct AttentionRow {
  const float* q;
  float* acc;          ///< v_stride floats
  uint64_t begin, end; ///< positions it sees
  float max, sum;
};

/// Rows of one KV head, ordered by ascending `begin` and `end`.
struct AttentionTask {
  AttentionRow* rows;
  uint64_t count;
  KvBlocks cache; ///< of this KV head
  uint64_t k_dim, v_stride;
  float scale, softcap;
  KvType type;
  uint64_t key_group_bytes, value_row_bytes;
};

} // namespace cortiq::runtime
