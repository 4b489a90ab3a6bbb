#pragma once

// The tiles of q1 and q1s: f16 scale, 32 sign bits, lowest first.

#include <cstdint>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// The 32 weights of a tile; a row is such tiles and nothing else (block_decode.h).
inline void decode_q1_tile(const uint8_t* tile, float* out) {
  const float scale = half_to_float(load_u16(tile));
  const uint32_t bits = load_u32(tile + 2);
  for (int i = 0; i < 32; ++i)
    out[i] = bits >> i & 1 ? scale : -scale;
}

} // namespace cortiq::formats
