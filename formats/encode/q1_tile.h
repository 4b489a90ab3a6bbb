#pragma once

// What the one-bit codecs make of 32 weights.

#include "formats/encode/cmf_half.h"

namespace cortiq::formats {

/// Bit i is set where value i is not negative.
inline uint32_t sign_bits(std::span<const float, 32> values) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 32; ++i)
    bits |= static_cast<uint32_t>(values[i] >= 0) << i;
  return bits;
}

/// The mean magnitude, as stored.
inline float q1_scale(std::span<const float, 32> values) {
  float sum = 0;
  for (const float v : values)
    sum += std::fabs(v);
  return f16_scale(sum / 32);
}

} // namespace cortiq::formats
