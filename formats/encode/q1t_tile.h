#pragma once

// Bytes of q1t: a tile, and the overlay of a tensor that has none.

#include <cstdint>
#include <vector>

#include "formats/codec/half.h"
#include "formats/codec/ternary.h"
#include "formats/encode/row_source.h"

namespace cortiq::formats {

/// `digits`: 0 for 0, 1 for +scale, 2 for -scale; 35 of them, the last three 0.
inline void store_q1t_tile(uint8_t* tile, uint16_t scale, const int* digits) {
  store_u16(tile, scale);
  for (int b = 0; b < 7; ++b)
    tile[2 + b] = q1t_byte(digits + 5 * b);
}

inline Status write_empty_q1t_overlay(PayloadSink& sink, uint64_t rows, uint64_t tiles) {
  return sink.write_at(rows * tiles * 9, std::vector<uint8_t>(4 * (rows + 1)));
}

} // namespace cortiq::formats
