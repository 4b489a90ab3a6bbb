#pragma once

// Inline number helpers of the codecs. Branch-free, so that loops over whole embeddings vectorise; independent of the
// floating-point environment's flush-to-zero modes, because no step has a denormal operand or result.

#include <bit>
#include <cstdint>
#include <cstring>

namespace cortiq::formats {

// All formats are little-endian, and so is every machine this project targets.
static_assert(std::endian::native == std::endian::little);

inline uint16_t load_u16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline uint32_t load_u32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_u16(uint8_t* p, uint16_t v) {
  std::memcpy(p, &v, sizeof v);
}
inline void store_u32(uint8_t* p, uint32_t v) {
  std::memcpy(p, &v, sizeof v);
}

/// Exact; NaN payloads move up by 13 bits.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  // Rebias the exponent by 127 - 15; infinity and NaN by as much again.
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t special = magnitude + (224u << 23);
  // A denormal is mantissa * 2^-24: put the mantissa under 2^-14 and take 2^-14 away again, which is exact.
  const float denormal = std::bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f;
  uint32_t result = magnitude < (1u << 23) ? std::bit_cast<uint32_t>(denormal) : normal;
  result = magnitude >= (31u << 23) ? special : result;
  return std::bit_cast<float>(result | sign);
}

inline float bfloat_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// IEEE round to nearest even; NaN becomes the quiet NaN 0x7e00 with its sign.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: rebias, add half of the last kept place (less one on an even mantissa), cut. A carry out of the
  // mantissa raises the exponent, up to infinity. The subtraction may wrap for magnitudes that the selects below
  // replace.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  // Denormal results: adding 0.5 aligns the value to a last place of 2^-24, and the addition itself rounds to even.
  const float clamped = std::bit_cast<float>(magnitude < (113u << 23) ? magnitude : 0u);
  const uint32_t denormal = std::bit_cast<uint32_t>(clamped + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < (113u << 23) ? denormal : normal;
  result = magnitude >= (143u << 23) ? 0x7c00u : result;
  result = magnitude > (255u << 23) ? 0x7e00u : result;
  return static_cast<uint16_t>(result | sign);
}

} // namespace cortiq::formats
