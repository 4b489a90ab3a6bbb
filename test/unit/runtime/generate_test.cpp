#include "runtime/generate/generate.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace cortiq::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The next token is always the last one plus one.
class Counter : public Engine {
public:
  explicit Counter(uint64_t context) : context_(context), row_(100) {}
  uint64_t vocab() const override { return row_.size(); }
  uint64_t max_context() const override { return context_; }
  uint64_t position() const override { return position_; }
  void rewind(uint64_t position) override { position_ = position; }
  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all_logits) override {
    position_ += tokens.size();
    rows_.clear();
    for (const uint32_t token : tokens) {
      row_.assign(row_.size(), 0);
      row_[(token + 1) % row_.size()] = token == poison ? NAN : 1;
      if (all_logits)
        rows_.insert(rows_.end(), row_.begin(), row_.end());
    }
    return std::span<const float>(all_logits ? rows_ : row_);
  }
  uint32_t poison = 1000;

private:
  uint64_t context_, position_ = 0;
  std::vector<float> row_, rows_;
};

StatusOr<Generated> run(Engine& engine, std::vector<uint32_t> prompt, GenerateOptions options) {
  sampling::Sampler sampler(sampling::SamplingOptions::greedy(), static_cast<uint32_t>(engine.vocab()));
  return generate(engine, sampler, prompt, options, nullptr);
}

std::vector<uint32_t> count_to(uint32_t n) {
  std::vector<uint32_t> out(n);
  for (uint32_t i = 0; i < n; ++i)
    out[i] = i;
  return out;
}

TEST(Generate, StopsAtTheLimitAndAtAStopId) {
  Counter engine(50);
  const auto limited = run(engine, {5}, {.max_tokens = 3, .stop_ids = {}});
  ASSERT_TRUE(limited.ok());
  EXPECT_THAT(limited->tokens, ElementsAre(6, 7, 8));
  EXPECT_EQ(limited->finish, FinishReason::kLength);
  engine.reset();
  const auto stopped = run(engine, {5}, {.max_tokens = 30, .stop_ids = {9}});
  EXPECT_THAT(stopped->tokens, ElementsAre(6, 7, 8));
  EXPECT_EQ(stopped->finish, FinishReason::kStop);
}

TEST(Generate, ContextOf32) {
  for (const uint64_t limit : {1u, 2u, 8u}) {
    for (const uint32_t prompt : {30u, 31u, 32u}) {
      Counter engine(32);
      const auto result = run(engine, count_to(prompt), {.max_tokens = limit, .stop_ids = {}});
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->tokens.size(), std::min<uint64_t>(limit, 33 - prompt)) << prompt << " tokens, -n " << limit;
      EXPECT_EQ(result->finish, FinishReason::kLength);
    }
    Counter engine(32);
    const auto refused = run(engine, count_to(33), {.max_tokens = limit, .stop_ids = {}});
    EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("33"), HasSubstr("32")));
    EXPECT_EQ(exit_code(refused.status()), 2);
  }
}

TEST(Generate, IsCancelledBetweenBatchesAndBetweenTokens) {
  Counter engine(500);
  int asked = 0;
  GenerateOptions options;
  options.cancelled = [&] { return ++asked > 2; };
  const auto in_prompt = run(engine, count_to(300), options);
  ASSERT_TRUE(in_prompt.ok());
  EXPECT_EQ(in_prompt->finish, FinishReason::kCancelled);
  EXPECT_TRUE(in_prompt->tokens.empty());
  EXPECT_EQ(engine.position(), 2 * engine.preferred_batch());
  engine.reset();
  asked = 0;
  const auto later = run(engine, {5}, options);
  EXPECT_THAT(later->tokens, ElementsAre(6, 7));
  EXPECT_EQ(later->finish, FinishReason::kCancelled);
  EXPECT_EQ(engine.position(), 2u); // the prompt and the first token; the second was chosen only
}

/// Allows multiples of ten, up to a last one.
class Tens : public TokenConstraint {
public:
  explicit Tens(uint32_t last) : last_(last) {}
  void mask(std::span<float> logits) override {
    for (size_t id = 0; id < logits.size(); ++id)
      if (id == 0 || id % 10 != 0 || (!accepted.empty() && id != accepted.back() + 10u))
        logits[id] = -INFINITY;
  }
  bool accept(uint32_t id) override {
    accepted.push_back(id);
    return id != last_;
  }
  std::vector<uint32_t> accepted;

private:
  uint32_t last_;
};

TEST(Generate, AConstraintNarrowsEachChoiceAndEndsTheText) {
  Counter engine(50);
  Tens tens(50);
  std::vector<float> shown;
  sampling::Sampler sampler(sampling::SamplingOptions::greedy(), static_cast<uint32_t>(engine.vocab()));
  const auto result = generate(engine, sampler, std::vector<uint32_t>{29}, {.stop_ids = {}, .constraint = &tens},
                               [&](uint32_t, std::span<const float> logits) {
                                 shown.push_back(logits[1]);
                                 return Status();
                               });
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->tokens, ElementsAre(30, 40, 50));
  EXPECT_EQ(result->finish, FinishReason::kStop);
  EXPECT_EQ(tens.accepted, result->tokens);
  EXPECT_THAT(shown, ElementsAre(0, 0, 0)); // the model's own logits
}

TEST(Generate, AnEmptyPromptIsOneSentence) {
  Counter engine(32);
  EXPECT_THAT(run(engine, {}, {}).status().message(), HasSubstr("no tokens"));
}

TEST(Generate, NaNIsAnErrorAtItsPosition) {
  Counter engine(32);
  engine.poison = 7;
  EXPECT_THAT(run(engine, {5}, {.max_tokens = 9, .stop_ids = {}}).status().message(), HasSubstr("position 2"));
  engine.reset();
  const std::vector<uint32_t> prompt = {1, 7, 3};
  EXPECT_THAT(collect_logits(engine, prompt, [](std::span<const float>) { return Status(); }).message(),
              HasSubstr("position 1"));
}

} // namespace
} // namespace cortiq::runtime
