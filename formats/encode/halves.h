#pragma once

#include <cstdint>

namespace cortiq::formats {

/// 16 bytes of nibbles where byte i holds weights i and 16 + i (GGUF) to bytes that hold neighbours (CMF).
inline void pair_neighbours(const uint8_t* halves, uint8_t* pairs) {
  for (int k = 0; k < 8; ++k) {
    pairs[k] = static_cast<uint8_t>((halves[2 * k] & 15) | (halves[2 * k + 1] & 15) << 4);
    pairs[8 + k] = static_cast<uint8_t>(halves[2 * k] >> 4 | (halves[2 * k + 1] & 0xf0));
  }
}

} // namespace cortiq::formats
