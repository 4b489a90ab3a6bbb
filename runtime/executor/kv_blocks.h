#pragma once

// Where the blocks of positions of one head's cache stand, in a cache that is whole as in one of pages.

#include <cstdint>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// The keys and values of one KV head of a layer, by blocks of kPositionBlock positions.
struct KvBlocks {
  uint8_t* keys = nullptr; ///< of a whole cache
  uint8_t* values = nullptr;
  uint8_t* const* pages = nullptr;           ///< null: the cache is whole
  uint64_t count = 0;                        ///< block b of the context stands at place b % count
  uint64_t key_offset = 0, value_offset = 0; ///< in a page
  uint64_t key_bytes = 0, value_bytes = 0;   ///< of a block

  KvBlocks(const StepContext& step, const KvShape& shape, uint32_t layer, uint64_t head)
      : key_bytes(shape.key_bytes(step.kv_type, kPositionBlock)),
        value_bytes(shape.value_bytes(step.kv_type, kPositionBlock)) {
    if (!step.pages.empty()) {
      pages = step.pages.data();
      count = step.pages.size();
      key_offset = step.page_layers[layer].key_offset + head * key_bytes;
      value_offset = step.page_layers[layer].value_offset + head * value_bytes;
      return;
    }
    count = shape.capacity(step.kv_positions) / kPositionBlock;
    keys = step.kv[layer].keys + head * count * key_bytes;
    values = step.kv[layer].values + head * count * value_bytes;
  }

  uint64_t place(uint64_t block) const { return block % count; }
  uint8_t* keys_at(uint64_t place) const { return pages ? pages[place] + key_offset : keys + place * key_bytes; }
  uint8_t* values_at(uint64_t place) const {
    return pages ? pages[place] + value_offset : values + place * value_bytes;
  }
  /// Bytes from a block to the one at the next place, for prefetches: of a whole cache they may end past it.
  int64_t key_step(uint64_t place) const {
    return !pages ? static_cast<int64_t>(key_bytes) : place + 1 < count ? pages[place + 1] - pages[place] : 0;
  }
  int64_t value_step(uint64_t place) const {
    return !pages ? static_cast<int64_t>(value_bytes) : place + 1 < count ? pages[place + 1] - pages[place] : 0;
  }
};

} // namespace cortiq::runtime
