#include "formats/codec/half.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "formats/codec/codec.h"
#include "test/unit/codec/golden.h"

namespace cortiq::formats {
namespace {

TEST(Half, ToFloatIsExactForEveryPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    const float got = f16_to_f32(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::signbit(got), bits >= 0x8000) << bits;
    const float magnitude = std::fabs(got);
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(got), mantissa != 0) << bits;
      ASSERT_EQ(std::isinf(got), mantissa == 0) << bits;
    } else if (exponent == 0) {
      ASSERT_EQ(magnitude, std::ldexp(static_cast<float>(mantissa), -24)) << bits;
    } else {
      ASSERT_EQ(magnitude, std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25)) << bits;
    }
  }
}

TEST(Half, RoundTripsEveryNumber) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    ASSERT_EQ(f32_to_f16(value), std::isnan(value) ? (bits & 0x8000) | 0x7e00 : bits) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  // Halfway between neighbours goes to the even one, one f32 step beyond goes to the nearer.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = f16_to_f32(static_cast<uint16_t>(bits));
    const float high = bits + 1 == 0x7c00 ? 65536.0f : f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2; // exact: f32 has 13 bits more
    const uint32_t even = bits + (bits & 1);
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << bits;
  }
}

TEST(Half, KeepsTheEndsOfTheRange) {
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::quiet_NaN()) & 0x7fff, 0x7e00);
}

TEST(Half, MatchesTheGoldenConversions) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  const auto& files = golden.manifest["f16_conversion"]["files"];
  const std::vector<uint32_t> input = golden.words<uint32_t>(files["x"]["file"]);
  const std::vector<uint16_t> want = golden.words<uint16_t>(files["ieee_rne"]["file"]);
  ASSERT_FALSE(input.empty());
  ASSERT_EQ(input.size(), want.size());
  for (size_t i = 0; i < input.size(); ++i) {
    const float value = std::bit_cast<float>(input[i]);
    const uint16_t got = f32_to_f16(value);
    if (std::isnan(value))
      EXPECT_TRUE((got & 0x7c00) == 0x7c00 && (got & 0x3ff) != 0) << std::hex << input[i];
    else
      EXPECT_EQ(got, want[i]) << std::hex << input[i];
  }
}

TEST(BFloat, IsTheUpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    ASSERT_EQ(std::bit_cast<uint32_t>(bf16_to_f32(static_cast<uint16_t>(bits))), bits << 16);
}

} // namespace
} // namespace cortiq::formats
