// Guessing ahead without a model: what is kept for the block that guesses, when guessing pays, and that the tokens of a
// generation do not depend on it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/generate/generate.h"
#include "runtime/session/draft_memory.h"

namespace cortiq::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<uint32_t> follow(const DraftRun& run) {
  return {run.follow.begin(), run.follow.end()};
}

TEST(DraftMemory, CoversEachRowOnceWithTheIdBehindIt) {
  DraftMemory memory;
  EXPECT_FALSE(memory.run(0, 1));
  const std::vector<uint32_t> prompt = {10, 11, 12};
  memory.ran(0, prompt);
  const auto run = memory.run(3, 13);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->first, 0u);
  EXPECT_EQ(run->count, 3u);
  EXPECT_EQ(run->position, 0u);
  EXPECT_THAT(follow(*run), ElementsAre(11, 12, 13));
  memory.covered();
  EXPECT_FALSE(memory.run(3, 13)) << "its rows are covered";
}

TEST(DraftMemory, AWrongGuessLeavesTheRowBeforeIt) {
  DraftMemory memory;
  memory.ran(0, std::vector<uint32_t>{10, 11});
  ASSERT_TRUE(memory.run(2, 12));
  memory.covered();
  memory.ran(2, std::vector<uint32_t>{12, 99}); // 99 is the guess
  memory.rewind(3);
  const auto run = memory.run(3, 13);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->count, 1u);
  EXPECT_EQ(run->position, 2u);
  EXPECT_THAT(follow(*run), ElementsAre(13));
}

TEST(DraftMemory, BeginsAnewBehindAGap) {
  DraftMemory memory;
  memory.ran(0, std::vector<uint32_t>{10, 11});
  ASSERT_TRUE(memory.run(2, 12));
  memory.covered();
  memory.lose_rows();
  memory.ran(7, std::vector<uint32_t>{17});
  const auto run = memory.run(8, 18);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->position, 0u);
  memory.covered();
  memory.rewind(4);
  memory.ran(4, std::vector<uint32_t>{14});
  ASSERT_TRUE(memory.run(5, 15));
  EXPECT_EQ(memory.run(5, 15)->position, 0u);
}

TEST(DraftPolicy, PausesLongerEachTimeWhileGuessesAreWrong) {
  DraftPolicy policy(Speculation::kAuto);
  for (uint64_t i = 0; i < DraftPolicy::kWarmUp; ++i) {
    EXPECT_FALSE(policy.wants());
    policy.plain(1);
  }
  for (uint64_t pause = DraftPolicy::kFirstPause; pause <= 4 * DraftPolicy::kFirstPause; pause *= 2) {
    for (uint64_t i = 0; i < DraftPolicy::kTrial; ++i) {
      EXPECT_TRUE(policy.wants());
      policy.guessed(1, false);
    }
    for (uint64_t i = 0; i < pause; ++i) {
      EXPECT_FALSE(policy.wants());
      policy.plain(1);
    }
  }
}

TEST(DraftPolicy, AsksTheClockWhereHalfOfTheGuessesAreRight) {
  for (const double seconds : {1.4, 1.6}) {
    DraftPolicy policy(Speculation::kAuto);
    for (uint64_t i = 0; i < DraftPolicy::kWarmUp; ++i)
      policy.plain(1);
    for (uint64_t i = 0; i < DraftPolicy::kTrial; ++i)
      policy.guessed(seconds, i % 2 == 0);
    EXPECT_EQ(policy.wants(), seconds < 1.5);
  }
}

/// The next token is the last one plus one; every third guess is wrong.
class Guesser : public Engine {
public:
  uint64_t vocab() const override { return 50; }
  uint64_t max_context() const override { return 40; }
  uint64_t position() const override { return held.size(); }
  void rewind(uint64_t position) override { held.resize(position); }
  bool can_draft() const override { return true; }
  void keep_drafts(bool) override {}
  std::span<const float> draft(uint32_t next) override {
    row(++asked % 3 == 0 ? next : next + 1, guess_);
    return guess_;
  }
  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all) override {
    if (tokens.size() > max_context() - position())
      return invalid("full");
    rows_.clear();
    for (const uint32_t token : tokens) {
      held.push_back(token);
      std::vector<float> one;
      row(token + 1, one);
      if (!all)
        rows_.clear();
      rows_.insert(rows_.end(), one.begin(), one.end());
    }
    return std::span<const float>(rows_);
  }

  std::vector<uint32_t> held;
  uint64_t asked = 0;

private:
  void row(uint32_t best, std::vector<float>& out) const {
    out.assign(vocab(), 0);
    out[best % vocab()] = 1;
  }
  std::vector<float> rows_, guess_;
};

TEST(Generate, GuessesChangeNeitherTokensNorWhatTheEngineHolds) {
  for (const uint64_t most : {1, 2, 3, 7, 12, 100})
    for (const std::vector<uint32_t>& stop : {std::vector<uint32_t>{}, std::vector<uint32_t>{11}, {12}, {13}}) {
      std::vector<uint32_t> tokens, held;
      for (const Speculation mode : {Speculation::kOff, Speculation::kOn, Speculation::kAuto}) {
        Guesser engine;
        sampling::Sampler sampler(sampling::SamplingOptions::greedy(), 50);
        const std::vector<uint32_t> prompt = {3, 4, 5};
        const auto out = generate(engine, sampler, prompt, {most, stop, mode}, nullptr);
        ASSERT_TRUE(out.ok()) << out.status().message();
        if (mode == Speculation::kOff) {
          tokens = out->tokens;
          held = engine.held;
          EXPECT_EQ(out->drafts.guessed, 0u);
        }
        EXPECT_THAT(out->tokens, ElementsAreArray(tokens));
        EXPECT_THAT(engine.held, ElementsAreArray(held));
        EXPECT_LE(out->drafts.accepted, out->drafts.guessed);
        if (mode == Speculation::kOn && most == 100 && stop.empty())
          EXPECT_GT(out->drafts.accepted, 0u);
      }
    }
}

} // namespace
} // namespace cortiq::runtime
