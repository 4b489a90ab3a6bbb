#pragma once

// Random codes that encoders produce.

#include <cstdint>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// Makes ternary codes of random 2-bit codes, in any order: 3 becomes 1 (a zero weight), so that weights have the mean
/// 0 and a deviation of 0.7071 scales.
inline void make_ternary(uint8_t* codes, uint32_t dwords) {
  for (uint32_t u = 0; u < dwords; ++u) {
    const uint32_t word = load_u32(codes + 4 * u);
    const uint32_t both = word & word >> 1 & 0x55555555u;
    store_u32(codes + 4 * u, word ^ both << 1);
  }
}

} // namespace cortiq::formats
