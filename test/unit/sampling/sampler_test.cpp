#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::runtime::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Keeps everything: plain sampling from the softmax.
SamplingOptions plain(uint64_t seed = 1) {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.repetition_penalty = 1;
  options.seed = seed;
  return options;
}

std::vector<float> pseudo_logits(size_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> logits(count);
  for (float& logit : logits)
    logit = static_cast<float>(random.uniform() * 12 - 6);
  return logits;
}

/// The chain written down a second time, as plainly as the specification has it: sets of ids, no shortcuts.
class PlainChain {
public:
  PlainChain(SamplingOptions options, uint32_t limit)
      : options_(std::move(options)), limit_(limit), state_(options_.seed) {}

  uint32_t sample(std::vector<float> logits, const std::vector<uint32_t>& past) {
    logits.resize(std::min<size_t>(logits.size(), limit_));
    for (uint32_t id : options_.suppress)
      logits[id] = -kInf;
    for (uint32_t id : std::set<uint32_t>(past.begin(), past.end())) {
      if (id >= logits.size())
        continue;
      float& l = logits[id];
      l = l > 0 ? l / options_.repetition_penalty : l * options_.repetition_penalty;
      l -= options_.presence_penalty;
    }
    uint32_t best = 0;
    for (uint32_t id = 0; id < logits.size(); ++id)
      if (logits[id] >= logits[best])
        best = id;
    if (options_.temperature < 1e-6f)
      return best;
    std::vector<double> p(logits.size());
    for (size_t id = 0; id < p.size(); ++id)
      p[id] = std::exp((static_cast<double>(logits[id]) - logits[best]) / options_.temperature);
    double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& value : p)
      value /= total;
    std::vector<double> full = p;
    for (double& value : p)
      if (value < options_.min_p * full[best])
        value = 0;
    if (options_.top_k > 0 && options_.top_k < p.size()) {
      std::vector<double> sorted = p;
      std::sort(sorted.rbegin(), sorted.rend());
      for (double& value : p)
        if (value < sorted[options_.top_k - 1])
          value = 0;
    }
    if (options_.top_p < 1) {
      std::vector<uint32_t> order(p.size());
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
      double sum = 0;
      for (uint32_t id : order) {
        if (sum >= options_.top_p)
          p[id] = 0;
        sum += p[id];
      }
    }
    double kept = std::accumulate(p.begin(), p.end(), 0.0);
    double u = next_uniform(), sum = 0;
    for (uint32_t id = 0; id < p.size(); ++id) {
      sum += p[id] / kept;
      if (sum > u)
        return id;
    }
    return best;
  }

private:
  double next_uniform() {
    state_ += 0x9E3779B97F4A7C15ull;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return static_cast<double>(z >> 40) / (1 << 24);
  }

  SamplingOptions options_;
  uint32_t limit_;
  uint64_t state_;
};

TEST(SplitMix64Test, GivesThePublishedSequence) {
  // The first outputs of the reference implementation for seed 1234567.
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SamplerTest, GoesOnBehindTheDrawsOfAnother) {
  SamplingOptions options;
  options.repetition_penalty = 1;
  const std::vector<float> logits = {1, 0.5f, 0.9f, 0.7f, 0.2f};
  Sampler whole(options, 5), first(options, 5), second(options, 5);
  std::vector<uint32_t> want, got;
  for (int i = 0; i < 40; ++i)
    want.push_back(*whole.sample(logits));
  for (int i = 0; i < 25; ++i)
    got.push_back(*first.sample(logits));
  EXPECT_EQ(first.draws(), 25u);
  second.skip(first.draws());
  for (int i = 25; i < 40; ++i)
    got.push_back(*second.sample(logits));
  EXPECT_EQ(got, want);
  EXPECT_EQ(second.draws(), 40u);
}

TEST(SamplerTest, GreedyTakesTheHighestIdOfEqualLogits) {
  Sampler sampler(SamplingOptions::greedy(), 100);
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 3, 2, 3, 0}), 3u);
  EXPECT_EQ(*sampler.sample(std::vector<float>{0, 0, 0}), 2u);
}

TEST(SamplerTest, NeverChoosesIdsWithoutText) {
  Sampler greedy(SamplingOptions::greedy(), 3);
  EXPECT_EQ(*greedy.sample(std::vector<float>{1, 2, 0, 9, 9}), 1u);
  Sampler random(plain(), 3);
  for (int i = 0; i < 200; ++i)
    EXPECT_LT(*random.sample(std::vector<float>{0, 0, 0, 9, 9}), 3u);
}

TEST(SamplerTest, NeverChoosesSuppressedIds) {
  SamplingOptions options = SamplingOptions::greedy();
  options.suppress = {1, 400};
  Sampler sampler(options, 10);
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 5, 2}), 2u);
}

TEST(SamplerTest, ANaNIsAFailureThatNamesTheToken) {
  for (float bad : {kNan, kInf}) {
    for (float temperature : {0.0f, 1.0f}) {
      SamplingOptions options = plain();
      options.temperature = temperature;
      Sampler sampler(options, 10);
      auto chosen = sampler.sample(std::vector<float>{0, 1, bad, 3});
      ASSERT_FALSE(chosen.ok());
      EXPECT_THAT(chosen.status().message(), ::testing::HasSubstr("token 2"));
      EXPECT_EQ(exit_code(chosen.status()), 2);
    }
  }
}

TEST(SamplerTest, ARowWithoutAnyChoiceIsAFailure) {
  Sampler sampler(plain(), 10);
  EXPECT_FALSE(sampler.sample(std::vector<float>{-kInf, -kInf}).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{}).ok());
  EXPECT_FALSE(Sampler(plain(), 0).sample(std::vector<float>{1, 2}).ok());
}

TEST(SamplerTest, PenaltyDividesPositiveAndMultipliesNegativeLogitsOnce) {
  SamplingOptions options = SamplingOptions::greedy();
  options.repetition_penalty = 2;
  Sampler sampler(options, 10);
  sampler.observe(std::vector<uint32_t>{0, 0, 0, 2});
  // 0: 4 -> 2 and not 0.5, so it stays above 1.5; 2: -1 -> -2.
  EXPECT_EQ(*sampler.sample(std::vector<float>{4, 1.5f, -1}), 0u);
  EXPECT_EQ(*sampler.sample(std::vector<float>{-3, -1.5f, -1}), 1u);
}

TEST(SamplerTest, PresencePenaltyAndWindow) {
  SamplingOptions options = SamplingOptions::greedy();
  options.presence_penalty = 1;
  options.penalty_window = 2;
  Sampler sampler(options, 10);
  sampler.observe(std::vector<uint32_t>{0, 1, 2});
  // Only 1 and 2 are within the window.
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 1.5f, 1.5f}), 0u);
}

TEST(SamplerTest, FrequencyPenaltyCountsTheOccurrences) {
  SamplingOptions options = SamplingOptions::greedy();
  options.frequency_penalty = 0.5f;
  Sampler sampler(options, 10);
  sampler.observe(std::vector<uint32_t>{0, 0, 0, 2});
  EXPECT_EQ(*sampler.sample(std::vector<float>{3, 1.75f, 2}), 1u); // 1.5, 1.75, 1.5
  EXPECT_EQ(*sampler.sample(std::vector<float>{3.5f, 1.75f, 2}), 0u);
}

TEST(SamplerTest, BiasIsAddedBeforeAllElse) {
  SamplingOptions options = SamplingOptions::greedy();
  options.bias = {{2, 5.0f}, {0, -1.0f}, {99, 100.0f}};
  Sampler sampler(options, 10);
  EXPECT_EQ(*sampler.sample(std::vector<float>{3, 1, -1}), 2u);
  options.bias = {{2, 2e4f}};
  EXPECT_FALSE(options.validate().ok());
}

TEST(SamplerTest, DrawsAscendingByCumulativeProbability) {
  // Two equal logits: below one half the first id, from one half on the second.
  SplitMix64 random(42);
  Sampler sampler(plain(42), 10);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(*sampler.sample(std::vector<float>{0.5f, 0.5f}), random.uniform() < 0.5 ? 0u : 1u);
}

TEST(SamplerTest, TopKKeepsTies) {
  SamplingOptions options = plain();
  options.top_k = 2;
  Sampler sampler(options, 10);
  std::set<uint32_t> chosen;
  for (int i = 0; i < 300; ++i)
    chosen.insert(*sampler.sample(std::vector<float>{3, 2, 2, 1}));
  EXPECT_EQ(chosen, (std::set<uint32_t>{0, 1, 2}));
}

TEST(SamplerTest, TopPKeepsTheOneThatReachesIt) {
  SamplingOptions options = plain();
  options.top_p = 0.6f;
  Sampler sampler(options, 10);
  std::set<uint32_t> chosen;
  std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  for (int i = 0; i < 300; ++i)
    chosen.insert(*sampler.sample(logits));
  EXPECT_EQ(chosen, (std::set<uint32_t>{0, 1}));
}

struct ChainCase {
  const char* name;
  SamplingOptions options;
};

class SamplerChainTest : public ::testing::TestWithParam<ChainCase> {};

TEST_P(SamplerChainTest, AgreesWithThePlainChain) {
  constexpr uint32_t kVocab = 401, kLimit = 397;
  Sampler sampler(GetParam().options, kLimit);
  PlainChain expected(GetParam().options, kLimit);
  std::vector<uint32_t> past = {3, 5, 5, 396, 400};
  sampler.observe(past);
  for (uint64_t step = 0; step < 200; ++step) {
    std::vector<float> logits = pseudo_logits(kVocab, step + 1000);
    auto chosen = sampler.sample(logits);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    ASSERT_EQ(*chosen, expected.sample(logits, past)) << "step " << step;
    past.push_back(*chosen);
    sampler.observe(*chosen);
  }
}

SamplingOptions with(void (*change)(SamplingOptions&)) {
  SamplingOptions options = plain(7);
  change(options);
  return options;
}

INSTANTIATE_TEST_SUITE_P(Options, SamplerChainTest,
                         ::testing::Values(ChainCase{"Plain", plain(99)}, ChainCase{"Defaults", SamplingOptions{}},
                                           ChainCase{"Greedy", SamplingOptions::greedy()},
                                           ChainCase{"Cold", with([](SamplingOptions& o) { o.temperature = 0.2f; })},
                                           ChainCase{"TopK", with([](SamplingOptions& o) { o.top_k = 5; })},
                                           ChainCase{"TopKOne", with([](SamplingOptions& o) { o.top_k = 1; })},
                                           ChainCase{"TopP", with([](SamplingOptions& o) { o.top_p = 0.5f; })},
                                           ChainCase{"MinP", with([](SamplingOptions& o) { o.min_p = 0.3f; })},
                                           ChainCase{"Penalties", with([](SamplingOptions& o) {
                                                       o.repetition_penalty = 1.3f;
                                                       o.presence_penalty = 0.5f;
                                                     })},
                                           ChainCase{"AllTogether", with([](SamplingOptions& o) {
                                                       o.temperature = 1.4f;
                                                       o.top_k = 30;
                                                       o.top_p = 0.8f;
                                                       o.min_p = 0.02f;
                                                       o.repetition_penalty = 1.1f;
                                                       o.suppress = {1, 17, 300};
                                                     })}),
                         [](const auto& info) { return info.param.name; });

TEST(SamplerTest, SameSeedSameDraws) {
  std::vector<float> logits = pseudo_logits(50, 5);
  Sampler a(plain(11), 50), b(plain(11), 50), c(plain(12), 50);
  int different = 0;
  for (int i = 0; i < 50; ++i) {
    uint32_t first = *a.sample(logits);
    EXPECT_EQ(first, *b.sample(logits));
    different += first != *c.sample(logits);
  }
  EXPECT_GT(different, 10);
}

TEST(SamplingOptionsTest, RefusesValuesOutOfRangeByName) {
  struct Case {
    const char* name;
    void (*change)(SamplingOptions&);
  };
  const Case cases[] = {
      {"temperature", [](SamplingOptions& o) { o.temperature = -1; }},
      {"temperature", [](SamplingOptions& o) { o.temperature = kNan; }},
      {"top-p", [](SamplingOptions& o) { o.top_p = 0; }},
      {"top-p", [](SamplingOptions& o) { o.top_p = 1.5f; }},
      {"min-p", [](SamplingOptions& o) { o.min_p = -0.1f; }},
      {"repetition penalty", [](SamplingOptions& o) { o.repetition_penalty = 0; }},
      {"presence penalty", [](SamplingOptions& o) { o.presence_penalty = kInf; }},
  };
  EXPECT_TRUE(SamplingOptions{}.validate().ok());
  for (const Case& c : cases) {
    SamplingOptions options;
    c.change(options);
    EXPECT_THAT(options.validate().message(), ::testing::HasSubstr(c.name));
  }
}

} // namespace
} // namespace cortiq::runtime::sampling
