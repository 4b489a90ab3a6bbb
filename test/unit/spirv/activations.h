#pragma once

// Vectors as shaders read them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace cortiq::codegen {

/// Where value i of a vector stands in lane order (shaders/common/order.glsl).
inline uint32_t lane_place(uint32_t i) {
  const uint32_t g = i / 32;
  return ((g / 32 * 8 + i % 32 / 4) * 32 + g % 32) * 4 + i % 4;
}

/// Floats of a vector of `count` values in lane order.
inline uint32_t lane_floats(uint32_t count) {
  return (count + 1023) / 1024 * 1024;
}

/// Padding is NaN, which nothing may read.
inline std::vector<float> in_lane_order(const std::vector<float>& x) {
  std::vector<float> out(lane_floats(static_cast<uint32_t>(x.size())), std::bit_cast<float>(0x7fc00000u));
  for (uint32_t i = 0; i < x.size(); ++i)
    out[lane_place(i)] = x[i];
  return out;
}

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& x : out)
    x = normal(random);
  return out;
}

inline void append(std::vector<uint32_t>& words, const std::vector<float>& x) {
  for (const float value : x)
    words.push_back(std::bit_cast<uint32_t>(value));
}

inline std::vector<float> floats(std::span<const uint32_t> words) {
  std::vector<float> out;
  for (const uint32_t word : words)
    out.push_back(std::bit_cast<float>(word));
  return out;
}

inline std::vector<uint32_t> words_of(const std::vector<uint8_t>& bytes) {
  std::vector<uint32_t> words((bytes.size() + 3) / 4 + 16);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

/// Activations in 8 bits (shaders/common/q8.glsl).
struct Q8 {
  std::vector<int8_t> codes;
  std::vector<float> scales; ///< one for 32 codes
};

inline Q8 quantize(const std::vector<float>& x) {
  Q8 out;
  for (size_t first = 0; first < x.size(); first += 32) {
    const size_t end = std::min(x.size(), first + 32);
    float largest = 0;
    for (size_t i = first; i < end; ++i)
      largest = std::max(largest, std::fabs(x[i]));
    out.scales.push_back(largest / 127.0f);
    const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
    for (size_t i = first; i < first + 32; ++i)
      out.codes.push_back(i < end ? static_cast<int8_t>(std::nearbyint(x[i] * inverse)) : 0);
  }
  return out;
}

inline uint32_t q8_words(uint32_t count) {
  return (count + 1023) / 1024 * 320;
}

inline std::vector<uint32_t> q8_row(const Q8& x) {
  const uint32_t count = static_cast<uint32_t>(x.codes.size()), padded = (count + 1023) / 1024 * 32;
  std::vector<uint32_t> words(q8_words(count));
  for (uint32_t g = 0; g < count / 32; ++g) {
    int sums[2] = {};
    for (uint32_t i = 0; i < 32; ++i) {
      const int code = x.codes[32 * g + i];
      const uint32_t k = i / 4;
      words[((g / 32 * 2 + k / 4) * 32 + g % 32) * 4 + k % 4] |= (code & 255u) << (8 * (i % 4));
      sums[i / 16] += code;
    }
    words[padded * 8 + g] = std::bit_cast<uint32_t>(x.scales[g]);
    words[padded * 9 + g] = (sums[0] & 0xffffu) | static_cast<uint32_t>(sums[1]) << 16;
  }
  return words;
}

} // namespace cortiq::codegen
