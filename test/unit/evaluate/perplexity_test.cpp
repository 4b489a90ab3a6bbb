#include "runtime/evaluate/perplexity.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace cortiq::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Logits are a function of the last two tokens and the position, times `sharpness`; the state is checked by using it.
class Pattern : public Engine {
public:
  explicit Pattern(double sharpness = 1, uint64_t vocab = 11, uint64_t batch = 3)
      : sharpness_(sharpness), vocab_(vocab), batch_(batch) {}
  uint64_t vocab() const override { return vocab_; }
  uint64_t max_context() const override { return 64; }
  uint64_t position() const override { return held.size(); }
  uint64_t preferred_batch() const override { return batch_; }
  void rewind(uint64_t position) override { held.resize(position); }
  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all_logits) override {
    rows_.clear();
    for (const uint32_t token : tokens) {
      if (token >= vocab_)
        return invalid("token id outside the vocabulary");
      held.push_back(token);
      if (!all_logits)
        rows_.clear();
      for (uint64_t i = 0; i < vocab_; ++i)
        rows_.push_back(logit(held, i));
    }
    return std::span<const float>(rows_);
  }
  /// After the tokens `past`.
  float logit(std::span<const uint32_t> past, uint64_t id) const {
    const uint64_t before = past.size() > 1 ? past[past.size() - 2] : 0;
    if (id == poison_id)
      return poison;
    return static_cast<float>(sharpness_ *
                              std::sin(static_cast<double>(past.back() * 7 + before * 3 + past.size() + id * id)));
  }

  std::vector<uint32_t> held;
  uint64_t poison_id = UINT64_MAX;
  float poison = NAN;

private:
  double sharpness_;
  uint64_t vocab_, batch_;
  std::vector<float> rows_;
};

std::vector<double> probabilities(const Pattern& engine, std::span<const uint32_t> past) {
  std::vector<double> p(engine.vocab());
  double sum = 0;
  for (uint64_t i = 0; i < p.size(); ++i)
    sum += p[i] = std::exp(static_cast<double>(engine.logit(past, i)));
  for (double& value : p)
    value /= sum;
  return p;
}

std::vector<uint32_t> text(uint64_t count) {
  std::vector<uint32_t> ids(count);
  for (uint64_t i = 0; i < count; ++i)
    ids[i] = static_cast<uint32_t>((i * i + 3 * i) % 11);
  return ids;
}

TEST(Perplexity, ScoresTheSecondHalfOfEachWindow) {
  Pattern engine;
  const auto ids = text(27); // two windows of 12, three tokens left out
  const auto result = evaluate_text(engine, nullptr, ids, {.window = 12});
  ASSERT_TRUE(result.ok()) << result.status().message();
  std::vector<double> losses;
  for (uint64_t window : {0, 12})
    for (uint64_t at = 6; at + 1 < 12; ++at)
      losses.push_back(-std::log(probabilities(engine, std::span(ids).subspan(window, at + 1))[ids[window + at + 1]]));
  double mean = 0, variance = 0;
  for (const double loss : losses)
    mean += loss / static_cast<double>(losses.size());
  for (const double loss : losses)
    variance += (loss - mean) * (loss - mean) / static_cast<double>(losses.size());
  EXPECT_EQ(result->windows, 2u);
  EXPECT_EQ(result->tokens, 10u);
  EXPECT_NEAR(result->model.mean_loss, mean, 1e-12);
  EXPECT_NEAR(result->model.perplexity(), std::exp(mean), 1e-11);
  EXPECT_NEAR(result->model.standard_error, std::sqrt(variance / 9), 1e-12);
  EXPECT_FALSE(result->reference || result->divergence);
}

TEST(Perplexity, BeginTokenReplacesTheFirstOfEachWindow) {
  Pattern engine;
  auto ids = text(8);
  const auto with = evaluate_text(engine, nullptr, ids, {.window = 4, .begin = 9});
  ids[0] = ids[4] = 9;
  const auto same = evaluate_text(engine, nullptr, ids, {.window = 4});
  ASSERT_TRUE(with.ok() && same.ok());
  EXPECT_EQ(with->model.mean_loss, same->model.mean_loss);
}

TEST(Perplexity, UniformPredictionsCostTheVocabulary) {
  Pattern engine(0);
  const auto result = evaluate_text(engine, nullptr, text(40), {.window = 20});
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result->model.perplexity(), 11, 1e-12);
  EXPECT_NEAR(result->model.perplexity_error(), 0, 1e-6);
}

TEST(Perplexity, LargeLogitsDoNotOverflow) {
  Pattern engine(1e6);
  const auto result = evaluate_text(engine, nullptr, text(40), {.window = 20});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(std::isfinite(result->model.mean_loss));
  EXPECT_GT(result->model.mean_loss, 1000);
}

TEST(Perplexity, ImpossibleTokensAreInfinitelyPerplexing) {
  Pattern engine;
  engine.poison_id = text(4)[3];
  engine.poison = -INFINITY;
  const auto result = evaluate_text(engine, nullptr, text(4), {.window = 4});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->model.perplexity(), INFINITY);
}

TEST(Divergence, MatchesItsDefinition) {
  Pattern model(1.1), reference(1.0, 11, 5);
  const auto ids = text(48);
  const auto result = evaluate_text(model, &reference, ids, {.window = 16});
  ASSERT_TRUE(result.ok()) << result.status().message();
  std::vector<double> values, differences;
  double agreed = 0;
  for (uint64_t window : {0, 16, 32})
    for (uint64_t at = 8; at + 1 < 16; ++at) {
      const auto past = std::span(ids).subspan(window, at + 1);
      const auto p = probabilities(reference, past), q = probabilities(model, past);
      differences.push_back(std::log(p[ids[window + at + 1]] / q[ids[window + at + 1]]));
      values.push_back(0);
      for (uint64_t i = 0; i < p.size(); ++i)
        values.back() += p[i] * std::log(p[i] / q[i]);
      agreed += std::ranges::max_element(p) - p.begin() == std::ranges::max_element(q) - q.begin();
    }
  std::ranges::sort(values);
  double mean = 0;
  for (const double v : values)
    mean += v / 21;
  ASSERT_TRUE(result->divergence && result->reference);
  EXPECT_NEAR(result->difference->mean_loss, result->model.mean_loss - result->reference->mean_loss, 1e-12);
  double variance = 0;
  for (const double d : differences)
    variance += (d - result->difference->mean_loss) * (d - result->difference->mean_loss) / 21;
  EXPECT_NEAR(result->difference->standard_error, std::sqrt(variance / 20), 1e-9);
  EXPECT_NEAR(result->divergence->mean, mean, 1e-9);
  EXPECT_NEAR(result->divergence->max, values.back(), 1e-9);
  EXPECT_NEAR(result->divergence->p99, values[19] * 0.2 + values[20] * 0.8, 1e-9); // 0.99 of 20 is 19.8
  EXPECT_DOUBLE_EQ(result->divergence->top1_agreement, agreed / 21);
  Pattern alone(1.0);
  EXPECT_EQ(result->reference->mean_loss, evaluate_text(alone, nullptr, ids, {.window = 16})->model.mean_loss);
}

TEST(Divergence, OfAModelFromItselfIsZero) {
  Pattern model, reference;
  const auto result = evaluate_text(model, &reference, text(48), {.window = 16});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->divergence->mean, 0);
  EXPECT_EQ(result->divergence->max, 0);
  EXPECT_EQ(result->divergence->top1_agreement, 1);
}

TEST(Divergence, SeesDifferentTopTokens) {
  Pattern model(-1), reference(1);
  const auto result = evaluate_text(model, &reference, text(48), {.window = 16});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->divergence->top1_agreement, 0);
  EXPECT_GT(result->divergence->mean, 0.1);
}

TEST(Perplexity, RefusesWhatCannotBeScored) {
  Pattern engine;
  const auto message = [&](std::vector<uint32_t> ids, uint64_t window, Engine* reference = nullptr) {
    const auto result = evaluate_text(engine, reference, ids, {.window = window});
    return std::pair(result.ok() ? 0 : exit_code(result.status()), result.ok() ? "" : result.status().message());
  };
  EXPECT_THAT(message(text(11), 12), Pair(2, HasSubstr("11 tokens, fewer than one context of 12")));
  EXPECT_THAT(message({}, 12), Pair(2, HasSubstr("0 tokens")));
  EXPECT_THAT(message(text(12), 3), Pair(2, HasSubstr("scores nothing")));
  EXPECT_THAT(message({1, 2, 3, 11}, 4), Pair(2, HasSubstr("token id 11 is outside")));
  Pattern other(1, 12);
  EXPECT_THAT(message(text(12), 12, &other), Pair(2, HasSubstr("vocabulary of 12, the model one of 11")));
  Pattern broken;
  broken.poison_id = 3;
  EXPECT_THAT(message(text(12), 12, &broken), Pair(2, HasSubstr("the reference: the logits at position 6")));
  engine.poison_id = 3;
  for (const float poison : {NAN, INFINITY}) {
    engine.poison = poison;
    EXPECT_THAT(message(text(12), 12), Pair(2, HasSubstr("position 6 are not numbers (id 3)")));
  }
}

TEST(Perplexity, ReportsEachWindow) {
  Pattern engine;
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ASSERT_TRUE(evaluate_text(engine, nullptr, text(14), {.window = 6}, [&](uint64_t done, uint64_t windows) {
                seen.emplace_back(done, windows);
              }).ok());
  EXPECT_THAT(seen, ElementsAre(Pair(1, 2), Pair(2, 2)));
}

} // namespace
} // namespace cortiq::runtime
