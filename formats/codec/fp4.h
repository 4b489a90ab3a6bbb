#pragma once

// The 4-bit floats E2M1 and the 8-bit scales of the MXFP4 and NVFP4 codecs.

#include <bit>
#include <cstdint>

namespace cortiq::formats {

/// Values of the codes; 8 is negative zero.
inline constexpr float kFP4Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// Twice the values, as ggml holds them: integers, so that code 8 is plain zero.
inline constexpr int8_t kFP4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// E8M0 of the OCP specification: 2^(byte - 127), 255 is NaN.
inline float e8m0_scale(uint8_t byte) {
  if (byte == 255)
    return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(byte == 0 ? 0x00400000u : static_cast<uint32_t>(byte) << 23);
}

/// The scale that goes with doubled values, as ggml reads the byte: 2^(byte - 128), no value is special.
inline float fp4_half_scale(uint8_t byte) {
  return std::bit_cast<float>(byte < 2 ? 0x00200000u << byte : static_cast<uint32_t>(byte - 1) << 23);
}

/// Unsigned E4M3: four bits of exponent, three of mantissa, bit 7 ignored. 0x7f is 0, but 0xff is 480.
inline float nvfp4_scale(uint8_t byte) {
  if (byte == 0x7f)
    return 0.0f;
  const uint32_t bits = byte & 0x7fu;
  if (bits < 8)
    return static_cast<float>(bits) * 0x1p-9f;
  return std::bit_cast<float>((bits << 20) + (120u << 23));
}

} // namespace cortiq::formats
