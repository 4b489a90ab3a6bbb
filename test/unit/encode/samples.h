#pragma once

// Matrices for encoder tests, and what a payload makes of them.

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "formats/encode/encoder.h"

namespace cortiq::formats {

/// Gaussian rows of different sizes with a few outliers, as weights are.
inline std::vector<float> weights(uint64_t rows, uint64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(rows * cols);
  for (uint64_t r = 0; r < rows; ++r) {
    const float size = std::ldexp(0.02f, static_cast<int>(random() % 5));
    for (uint64_t c = 0; c < cols; ++c)
      values[r * cols + c] = normal(random) * size * (random() % 100 == 0 ? 8.0f : 1.0f);
  }
  return values;
}

inline std::vector<float> decode(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols) {
  std::vector<float> values(rows * cols);
  for (uint64_t r = 0; r < rows; ++r)
    codec.decode_row(payload.data(), rows, cols, r, values.data() + r * cols);
  return values;
}

inline double squared_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return sum;
}

} // namespace cortiq::formats
