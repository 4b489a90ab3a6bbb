#pragma once

// A group of q4_block and of q4_tiled: 32 weights, one scale, neighbours in a byte.

#include "formats/encode/cmf_half.h"

namespace cortiq::formats {

/// Writes 16 bytes of nibbles and gives back the scale, which is the absolute maximum / 7.
inline float encode_q4_group(std::span<const float, 32> values, uint8_t* nibbles) {
  const float scale = f16_scale(absmax(values) / 7);
  for (int k = 0; k < 16; ++k) {
    const int low = quantize(values[2 * k] / scale, -8, 7) + 8;
    const int high = quantize(values[2 * k + 1] / scale, -8, 7) + 8;
    nibbles[k] = static_cast<uint8_t>(low | high << 4);
  }
  return scale;
}

} // namespace cortiq::formats
