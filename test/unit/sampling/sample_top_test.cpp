// What is chosen from the largest logits is what the whole row gives.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "runtime/sampling/sampler.h"

namespace cortiq::runtime::sampling {
namespace {

struct Row {
  std::vector<float> logits;
  std::vector<float> values;
  std::vector<uint32_t> ids;
  TopLogits top;
};

/// A row, and its largest logits as a device finds them: a few of every share, a sum in floats.
Row make_row(std::mt19937& random, uint32_t count, float spread, uint32_t limit, float temperature) {
  constexpr uint32_t kShares = 32, kTop = 8;
  Row row;
  std::normal_distribution<float> normal(0, spread);
  for (uint32_t i = 0; i < count; ++i)
    row.logits.push_back(std::round(normal(random) * 64) / 64); // equal ones among them
  row.top.largest = row.top.rest = -INFINITY;
  for (uint32_t i = 0; i < std::min(count, limit); ++i)
    row.top.largest = std::max(row.top.largest, row.logits[i]);
  for (uint32_t share = 0; share < kShares; ++share) {
    std::vector<uint32_t> own;
    float sum = 0;
    for (uint32_t i = share; i < std::min(count, limit); i += kShares) {
      own.push_back(i);
      sum += std::exp((row.logits[i] - row.top.largest) * (1 / temperature));
    }
    row.top.sum += sum;
    std::ranges::sort(own, [&](uint32_t a, uint32_t b) { return row.logits[a] > row.logits[b]; });
    if (own.size() >= kTop)
      row.top.rest = std::max(row.top.rest, row.logits[own[kTop - 1]]);
    for (size_t i = 0; i < std::min<size_t>(kTop, own.size()); ++i) {
      row.ids.push_back(own[i]);
      row.values.push_back(row.logits[own[i]]);
    }
  }
  row.top.values = row.values;
  row.top.ids = row.ids;
  return row;
}

TEST(SampleTop, ChoosesWhatTheRowGives) {
  std::mt19937 random(7);
  uint32_t certain = 0, asked = 0;
  for (uint32_t round = 0; round < 180; ++round) {
    SamplingOptions options;
    const uint32_t kind = round % 6;
    options.temperature = kind == 0 ? 0 : kind == 1 ? 1.0f : 0.7f;
    options.top_k = kind == 2 ? 0 : 20;
    options.top_p = kind == 3 ? 1 : 0.9f;
    options.min_p = kind == 4 ? 0 : 0.05f;
    options.repetition_penalty = kind == 5 ? 1 : 1.1f;
    options.presence_penalty = kind == 1 ? 0.5f : 0;
    options.seed = round;
    if (round % 5 == 0)
      options.suppress = {3, 40};
    const uint32_t limit = 1900;
    Sampler whole(options, limit), brief(options, limit);
    ASSERT_TRUE(brief.takes_top());
    for (uint32_t step = 0; step < 12; ++step) {
      Row row = make_row(random, 2000, 1.5f + static_cast<float>(round % 7), limit, brief.ask_top().temperature);
      const StatusOr<uint32_t> expected = whole.sample(row.logits);
      ASSERT_TRUE(expected.ok());
      ++asked;
      if (const std::optional<uint32_t> got = brief.sample_top(row.top)) {
        ++certain;
        ASSERT_EQ(*got, *expected) << "round " << round << ", step " << step;
      } else {
        ASSERT_EQ(*brief.sample(row.logits), *expected); // nothing was drawn
      }
      whole.observe(*expected);
      brief.observe(*expected);
    }
  }
  EXPECT_GT(certain, asked / 2);
}

TEST(SampleTop, LeavesWhatIsUncertainToTheRow) {
  const float values[] = {2.0f, 1.0f};
  const uint32_t ids[] = {5, 9};
  TopLogits top{values, ids, 2.0f, 2.0f, 10};
  Sampler greedy(SamplingOptions::greedy(), 100);
  EXPECT_FALSE(greedy.sample_top(top)); // an equal logit may stand outside
  top.rest = 1.5f;
  EXPECT_EQ(greedy.sample_top(top), 5u);
  SamplingOptions rising = SamplingOptions::greedy();
  rising.repetition_penalty = 0.9f;
  EXPECT_FALSE(Sampler(rising, 100).takes_top());
  rising = SamplingOptions::greedy();
  rising.bias = {{1, 5.0f}};
  EXPECT_FALSE(Sampler(rising, 100).takes_top());
}

} // namespace
} // namespace cortiq::runtime::sampling
