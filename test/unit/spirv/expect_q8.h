#pragma once

// Holds rows in 8 bits that a device made against what they are made of.

#include <cstdlib>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "test/unit/spirv/activations.h"

namespace cortiq::codegen {

/// `got` is a row of `x`, whole groups of it. A device's division may be inexact in its last bits, so codes may fall to
/// the other side of a half; scales may be off by `tolerance`, relatively.
inline void expect_q8(std::span<const uint32_t> got, const std::vector<float>& x, float tolerance = 1e-6f) {
  const std::vector<uint32_t> want = q8_row(quantize(x));
  ASSERT_EQ(got.size(), want.size());
  const size_t padded = want.size() / 10;
  for (uint32_t g = 0; g < (x.size() + 31) / 32; ++g) {
    int sums[2] = {};
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t word = ((g / 32 * 2 + i / 16) * 32 + g % 32) * 4 + i % 16 / 4;
      const int code = static_cast<int8_t>(got[word] >> (8 * (i % 4)));
      EXPECT_LE(std::abs(code - static_cast<int8_t>(want[word] >> (8 * (i % 4)))), 1) << g << " " << i;
      sums[i / 16] += code;
    }
    const float scale = std::bit_cast<float>(want[8 * padded + g]);
    EXPECT_NEAR(std::bit_cast<float>(got[8 * padded + g]), scale, tolerance * scale);
    EXPECT_EQ(got[9 * padded + g], (sums[0] & 0xffffu) | static_cast<uint32_t>(sums[1]) << 16);
  }
}

} // namespace cortiq::codegen
