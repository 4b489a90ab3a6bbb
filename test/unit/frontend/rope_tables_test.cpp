#include "compiler/frontend/RopeTables.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cortiq::compiler {
namespace {

TEST(RopeTables, PlainFrequenciesFallGeometrically) {
  const std::vector<double> table = plainFrequencies(10000, 8);
  ASSERT_EQ(table.size(), 4u);
  EXPECT_DOUBLE_EQ(table[0], 1);
  EXPECT_NEAR(table[1], 0.1, 1e-15);
  EXPECT_NEAR(table[3], 0.001, 1e-15);
}

TEST(RopeTables, FactorsDivide) {
  std::vector<double> table = {1, 0.5};
  divideFrequencies(table, std::vector<double>{1, 4});
  EXPECT_EQ(table, (std::vector<double>{1, 0.125}));
}

// dims 64, base 10000, context 4096: pair(32) = 10.47, pair(1) = 22.51, so the ramp runs from 10 to 23.
TEST(RopeTables, YarnKeepsFastPairsAndStretchesSlowOnes) {
  const std::vector<double> plain = plainFrequencies(10000, 64);
  for (YarnClamp clamp : {YarnClamp::kCmf, YarnClamp::kGguf}) {
    std::vector<double> table = plain;
    applyYarn(table, 10000, {.factor = 4, .originalContext = 4096}, clamp);
    for (int i = 0; i <= 10; ++i)
      EXPECT_DOUBLE_EQ(table[i], plain[i]) << i;
    for (int i = 23; i < 32; ++i)
      EXPECT_DOUBLE_EQ(table[i], plain[i] / 4) << i;
    const double share = 3.0 / 13;
    EXPECT_NEAR(table[13], plain[13] * (1 - share + share / 4), 1e-15);
  }
}

// With a long context the ramp would end behind the last pair: pair(32) = 27.5, pair(1) = 39.5. CMF ends it at the last
// pair (27 to 31), GGUF lets it run on (27 to 40).
TEST(RopeTables, ContainersEndTheRampDifferently) {
  const YarnParameters yarn{.factor = 2, .originalContext = 544000};
  const std::vector<double> plain = plainFrequencies(10000, 64);
  std::vector<double> cmf = plain, gguf = plain;
  applyYarn(cmf, 10000, yarn, YarnClamp::kCmf);
  applyYarn(gguf, 10000, yarn, YarnClamp::kGguf);
  EXPECT_NEAR(cmf[29] / plain[29], 1 - 0.5 * 2 / 4, 1e-12);
  EXPECT_NEAR(gguf[29] / plain[29], 1 - 0.5 * 2 / 13, 1e-12);
}

TEST(RopeTables, ExtFactorZeroIsPlainStretching) {
  std::vector<double> table = {1, 0.5};
  applyYarn(table, 10000, {.factor = 4, .originalContext = 4096, .extFactor = 0}, YarnClamp::kGguf);
  EXPECT_EQ(table, (std::vector<double>{0.25, 0.125}));
}

} // namespace
} // namespace cortiq::compiler
