#include "tools/cortiq-convert/rope_fields.h"

#include <cmath>
#include <gtest/gtest.h>

namespace cortiq::convert {
namespace {

TEST(RopeFields, PartialFactorGivesTheDimensionsBack) {
  for (uint64_t head : {64u, 80u, 96u, 128u, 160u, 192u, 256u})
    for (uint64_t dims = 2; dims <= head; dims += 2)
      EXPECT_EQ(static_cast<uint64_t>(std::floor(static_cast<float>(head) * partial_factor(dims, head))), dims) << head;
}

// Llama 3.1: factor 8, bounds 1 and 4, context 8192, base 500000, 128 dimensions.
TEST(RopeFields, Llama3FactorsHaveThreeRanges) {
  const std::vector<double> factors =
      llama3_factors(500000, 128, {.factor = 8, .low = 1, .high = 4, .original_context = 8192});
  ASSERT_EQ(factors.size(), 64u);
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(factors[28], 1); // 4.2 turns within the context
  EXPECT_EQ(factors[35], 8); // 0.998 turns
  EXPECT_EQ(factors[63], 8);
  for (size_t i = 1; i < factors.size(); ++i)
    EXPECT_GE(factors[i], factors[i - 1]);
  // In between: 1 / ((1 - s) / 8 + s), s = (turns - 1) / 3.
  const double turns = 8192 / (2 * std::acos(-1.0) * std::pow(500000.0, 60.0 / 128));
  const double s = (turns - 1) / 3;
  EXPECT_NEAR(factors[30], 1 / ((1 - s) / 8 + s), 1e-12);
}

} // namespace
} // namespace cortiq::convert
