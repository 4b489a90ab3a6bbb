#pragma once

// What the codebook codecs do with a grid entry.

#include <bit>
#include <cstdint>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// The sign byte of a 7-bit index: the index, and a bit 7 that makes the number of set bits even.
inline uint8_t iq_signs(uint32_t index) {
  return static_cast<uint8_t>(index | static_cast<uint32_t>(std::popcount(index) & 1) << 7);
}

/// Eight (four) weights: byte j of `entry` is a magnitude, bit j of `signs` says that it is negative.
inline void decode_grid8(uint64_t entry, uint8_t signs, float scale, float* out) {
  for (int j = 0; j < 8; ++j) {
    const float magnitude = scale * static_cast<float>(entry >> (8 * j) & 255);
    out[j] = signs >> j & 1 ? -magnitude : magnitude;
  }
}
inline void decode_grid4(uint32_t entry, uint32_t signs, float scale, float* out) {
  for (int j = 0; j < 4; ++j) {
    const float magnitude = scale * static_cast<float>(entry >> (8 * j) & 255);
    out[j] = signs >> j & 1 ? -magnitude : magnitude;
  }
}

/// Eight weights of IQ1: byte j of `entry` is a level of -1, 0 or 1, all moved by an eighth.
inline void decode_levels8(uint64_t entry, bool down, float scale, float* out) {
  const float delta = down ? -0.125f : 0.125f;
  for (int j = 0; j < 8; ++j)
    out[j] = scale * (static_cast<float>(static_cast<int8_t>(entry >> (8 * j))) + delta);
}

/// IQ1_M: the f16 d whose nibbles, lowest first, are the tops of the four scale words.
inline uint16_t iq1_m_d(const uint8_t* scales) {
  return static_cast<uint16_t>(load_u16(scales) >> 12 | (load_u16(scales + 2) >> 8 & 0x00f0) |
                               (load_u16(scales + 4) >> 4 & 0x0f00) | (load_u16(scales + 6) & 0xf000));
}

} // namespace cortiq::formats
