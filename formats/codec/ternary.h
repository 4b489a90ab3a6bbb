#pragma once

// Base-3 digits in a byte, as the ternary codecs have them.

#include <cstdint>

namespace cortiq::formats {

/// Digit `n` (0..4) of a byte of GGUF's ternary codecs and of row-group records: the byte is a fraction of 256, its
/// first digit the highest. Any byte decodes.
inline int ternary_digit(uint8_t byte, int n) {
  constexpr uint8_t kPowers[5] = {1, 3, 9, 27, 81};
  return static_cast<uint8_t>(byte * kPowers[n]) * 3 >> 8;
}

/// The byte with these five digits.
inline uint8_t ternary_byte(const int* digits) {
  const int number = digits[0] * 81 + digits[1] * 27 + digits[2] * 9 + digits[3] * 3 + digits[4];
  return static_cast<uint8_t>((number * 256 + 242) / 243);
}

/// Digit `n` (0..4) of a byte of CMF's q1t: the byte is a number, its first digit the lowest. Any byte decodes.
inline int q1t_digit(uint8_t byte, int n) {
  constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  return byte / kPowers[n] % 3;
}

/// The byte of q1t with these five digits.
inline uint8_t q1t_byte(const int* digits) {
  return static_cast<uint8_t>(digits[0] + 3 * digits[1] + 9 * digits[2] + 27 * digits[3] + 81 * digits[4]);
}

} // namespace cortiq::formats
