#pragma once

// Two orders of 32 nibbles in 16 bytes. "Pairs", in CMF files: byte k holds weights 2k (low) and 2k + 1. "Halves", in
// GGUF files and in records: byte i holds weights i (low) and 16 + i.

#include <cstdint>

namespace cortiq::formats {

inline void pairs_to_halves(const uint8_t* pairs, uint8_t* halves) {
  for (int k = 0; k < 8; ++k) {
    const uint8_t first = pairs[k];      // weights 2k, 2k + 1
    const uint8_t second = pairs[8 + k]; // weights 16 + 2k, 16 + 2k + 1
    halves[2 * k] = static_cast<uint8_t>((first & 15) | second << 4);
    halves[2 * k + 1] = static_cast<uint8_t>(first >> 4 | (second & 0xf0));
  }
}

inline void halves_to_pairs(const uint8_t* halves, uint8_t* pairs) {
  for (int k = 0; k < 8; ++k) {
    const uint8_t even = halves[2 * k];
    const uint8_t odd = halves[2 * k + 1];
    pairs[k] = static_cast<uint8_t>((even & 15) | odd << 4);
    pairs[8 + k] = static_cast<uint8_t>(even >> 4 | (odd & 0xf0));
  }
}

} // namespace cortiq::formats
