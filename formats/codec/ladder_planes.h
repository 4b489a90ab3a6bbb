#pragma once

// The planes of q4tp and q2tp: the tiles' codes, of 32 weights each, the rows' parameters (f16 lo, f16 step), and rung
// codes of 5 bits, one a tile, lowest bits first, a row padded to whole bytes.

#include <cstdint>
#include <optional>

#include "formats/checked_math.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {

/// Bytes of a row's rung codes; `tiles` is below 2^59, as a 32nd of a 64-bit number is.
inline uint64_t rung_bytes(uint64_t tiles) {
  return ceil_div(5 * tiles, 8);
}

/// Codec::payload_bytes of a codec with kTileBytes bytes of codes a tile.
template <uint64_t kTileBytes>
StatusOr<uint64_t> ladder_payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const uint64_t tiles = cols / 32;
  const std::optional<uint64_t> row_bytes = checked_add(checked_mul(tiles, kTileBytes), 4 + rung_bytes(tiles));
  return size_or_overflow(codec, rows, cols, checked_mul(row_bytes, rows));
}

/// Row `row` of a payload that has passed check_payload().
template <uint64_t kTileBytes>
struct LadderRow {
  LadderRow(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row)
      : tiles(cols / 32), codes(payload + row * tiles * kTileBytes),
        parameters(payload + rows * tiles * kTileBytes + 4 * row),
        rungs(payload + rows * (tiles * kTileBytes + 4) + row * rung_bytes(tiles)) {}

  uint64_t tiles;
  const uint8_t* codes;
  const uint8_t* parameters;
  const uint8_t* rungs;

  uint16_t lo() const { return load_u16(parameters); }
  uint16_t step() const { return load_u16(parameters + 2); }
  uint32_t rung(uint64_t tile) const {
    const uint64_t byte = 5 * tile / 8;
    const uint32_t next = byte + 1 < rung_bytes(tiles) ? rungs[byte + 1] : 0;
    return (rungs[byte] | next << 8) >> (5 * tile % 8) & 31;
  }
};

} // namespace cortiq::formats
