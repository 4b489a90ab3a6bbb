#pragma once

// Numbers as writers of CMF round them (specification 2.0).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// To f16: normal results round to nearest even, denormal ones half up in magnitude; magnitudes below 2^-25 become
/// zero.
inline uint16_t cmf_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = bits >> 23 & 0xff;
  if (exponent > 112 || exponent < 102) // normal, special, or far below: as IEEE, but flushed below 2^-25
    return exponent < 102 ? static_cast<uint16_t>(bits >> 16 & 0x8000u) : float_to_half(value);
  const uint32_t mantissa = (bits & 0x7fffffu) | 1u << 23;
  const uint32_t shift = 126 - exponent;
  const uint32_t rounded = (mantissa >> shift) + (mantissa >> (shift - 1) & 1);
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | rounded);
}

/// A scale as it is stored, and as everything is quantized against: never below 2^-14.
inline float f16_scale(float scale) {
  return std::max(half_to_float(cmf_half(scale)), 0x1p-14f);
}

/// The f16 bits of a number that is one already.
inline void store_half(uint8_t* to, float value) {
  store_u16(to, cmf_half(value));
}

inline float absmax(std::span<const float> values) {
  float largest = 0;
  for (const float v : values)
    largest = std::max(largest, std::fabs(v));
  return largest;
}

/// The integer nearest to `value`, ties to even; for magnitudes below 2^22. Two additions, which vectorise on every
/// machine, instead of a call into the library.
inline float nearest(float value) {
  return (value + 0x1.8p23f) - 0x1.8p23f;
}

/// The integer nearest to `value`, ties to even, within [least, most].
inline int quantize(float value, int least, int most) {
  return static_cast<int>(nearest(std::clamp(value, static_cast<float>(least), static_cast<float>(most))));
}

} // namespace cortiq::formats
