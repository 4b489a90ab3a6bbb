#pragma once

// Records that are the file's block with its parts in another order.

#include <cstdint>
#include <cstring>

namespace cortiq::formats {

/// A run of bytes that stands at `block` in the file's block and at `record` in the record.
struct Move {
  uint32_t block;
  uint32_t record;
  uint32_t bytes;
};

/// kMoves is an array of Move.
template <auto& kMoves>
void move_to_record(const uint8_t* block, uint8_t* record) {
  for (const Move& move : kMoves)
    std::memcpy(record + move.record, block + move.block, move.bytes);
}
template <auto& kMoves>
void move_from_record(const uint8_t* record, uint8_t* block) {
  for (const Move& move : kMoves)
    std::memcpy(block + move.block, record + move.record, move.bytes);
}

} // namespace cortiq::formats
