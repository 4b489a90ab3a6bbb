#pragma once

// Vectors as shaders read them.

#include <bit>
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

} // namespace cortiq::codegen
