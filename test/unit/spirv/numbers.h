#pragma once

// Numbers that tests of shaders give to them and compare.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace cortiq::codegen {

inline uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

inline double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Holds each value to `bound` parts of the largest one wanted.
inline void expect_near(const std::vector<float>& got, const std::vector<double>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1e-30;
  for (const double w : want)
    largest = std::max(largest, std::fabs(w));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]), bound * largest) << "value " << i << ": " << got[i] << ", " << want[i];
}

} // namespace cortiq::codegen
