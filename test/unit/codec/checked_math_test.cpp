#include "formats/checked_math.h"

#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(CheckedMath, AddsAndMultipliesUpToTheLimit) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul(kMax / 3, 3), kMax);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
}

TEST(CheckedMath, CarriesAFailureThroughAFormula) {
  EXPECT_EQ(checked_add(checked_mul(kMax, 2), 1), std::nullopt);
  EXPECT_EQ(checked_mul(checked_add(2, 3), 4), 20u);
}

TEST(CheckedMath, RoundsUp) {
  EXPECT_EQ(checked_round_up(0, 64), 0u);
  EXPECT_EQ(checked_round_up(1, 64), 64u);
  EXPECT_EQ(checked_round_up(64, 64), 64u);
  EXPECT_EQ(checked_round_up(kMax, 64), std::nullopt);
  EXPECT_EQ(ceil_div(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(ceil_div(0, 7), 0u);
}

TEST(CheckedMath, RangesDoNotWrap) {
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_TRUE(range_fits(4, 6, 10));
  EXPECT_FALSE(range_fits(5, 6, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
  EXPECT_FALSE(range_fits(1, kMax, 10));
}

} // namespace
} // namespace cortiq::formats
