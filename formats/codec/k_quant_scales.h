#pragma once

// The 12 bytes in which Q4_K and Q5_K keep eight 6-bit scales and eight 6-bit minimums.

#include <cstdint>

namespace cortiq::formats {

struct KQuantScale {
  int scale;
  int minimum;
};

/// Scale and minimum of sub-block `s` (0..7). The first four of each stand in the low six bits of bytes 0..3 and 4..7;
/// the others have their low four bits in bytes 8..11 and their high two in the tops of bytes 0..7.
inline KQuantScale k_quant_scale(const uint8_t* scales, int s) {
  if (s < 4)
    return {scales[s] & 63, scales[s + 4] & 63};
  return {(scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4, (scales[s + 4] >> 4) | (scales[s] >> 6) << 4};
}

} // namespace cortiq::formats
