#include "tools/cortiq-serve/engine/log_probabilities.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace cortiq::serve {
namespace {

TEST(TokenRecord, IsTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = {1, 3, 2, 3, -100};
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0) + std::exp(-100.0);
  const TokenRecord record = token_record(logits, 2, 3);
  EXPECT_EQ(record.id, 2u);
  EXPECT_NEAR(record.logprob, 2 - std::log(sum), 1e-12);
  ASSERT_EQ(record.likeliest.size(), 3u);
  EXPECT_EQ(record.likeliest[0].first, 1u);
  EXPECT_EQ(record.likeliest[1].first, 3u);
  EXPECT_EQ(record.likeliest[2].first, 2u);
  EXPECT_NEAR(record.likeliest[0].second, 3 - std::log(sum), 1e-12);
}

TEST(TokenRecord, HoldsWhatJsonCanHold) {
  const std::vector<float> logits = {80000, -80000, -std::numeric_limits<float>::infinity()};
  EXPECT_EQ(token_record(logits, 2, 0).logprob, kLeastLogprob);
  EXPECT_EQ(token_record(logits, 1, 0).logprob, kLeastLogprob);
  EXPECT_EQ(token_record(logits, 0, 20).likeliest.size(), 3u);
  EXPECT_EQ(token_record(logits, 0, 20).logprob, 0);
}

} // namespace
} // namespace cortiq::serve
