#pragma once

// The tiles of q1 and q1s: f16 scale, 32 sign bits, lowest first.

#include <cstdint>

#include "formats/codec/half.h"

namespace cortiq::formats {

inline void decode_q1_row(const uint8_t* tiles, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* tile = tiles + row * (cols / 32) * 6;
  for (uint64_t t = 0; t < cols / 32; ++t, tile += 6, out += 32) {
    const float scale = half_to_float(load_u16(tile));
    const uint32_t bits = load_u32(tile + 2);
    for (int i = 0; i < 32; ++i)
      out[i] = bits >> i & 1 ? scale : -scale;
  }
}

} // namespace cortiq::formats
