// A session of a model with recurrent state: batches, the way back, and steps that fail.

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "runtime/session/session.h"
#include "test/unit/runtime/recurrent_model.h"
#include "test/unit/runtime/session_fixture.h"

namespace cortiq::runtime {
namespace {

constexpr uint32_t kVocab = test::kRecurrentVocab, kPoison = test::kRecurrentPoison;

class RecurrentSession : public test::SessionFixture {
protected:
  RecurrentSession() : SessionFixture(kVocab - 1) {}
  void SetUp() override { model_ = load(folder_.file("m.cqa"), test::write_recurrent_model(folder_.file("m.cqa"))); }
  std::unique_ptr<Session> session(unsigned threads = 1, KvType kv = KvType::kF32) { return open(model_, threads, kv); }

  std::shared_ptr<const Model> model_;
};

TEST_F(RecurrentSession, ResultsDependNeitherOnChunksNorOnThreads) {
  const auto tokens = text(100);
  const std::vector<float> want = run(*session(), tokens);
  for (const unsigned threads : {1u, 3u})
    for (const size_t chunk : {1u, 5u, 12u, 40u})
      expect_same(run(*session(threads), tokens, chunk), want,
                  std::to_string(threads) + " threads, chunks of " + std::to_string(chunk));
}

TEST_F(RecurrentSession, GoesBackToAnyPosition) {
  const auto tokens = text(60), other = text(30, 1);
  auto one = session(2);
  for (const size_t chunk : {60u, 7u, 1u}) // copies at many positions, at few, at none
    for (const uint64_t back : {59u, 31u, 1u, 0u}) {
      one->reset();
      run(*one, tokens, chunk);
      one->rewind(back);
      EXPECT_EQ(one->position(), back);
      const std::vector<float> got = run(*one, other, 11);
      std::vector<uint32_t> sequence(tokens.begin(), tokens.begin() + static_cast<long>(back));
      sequence.insert(sequence.end(), other.begin(), other.end());
      const std::vector<float> want = run(*session(), sequence);
      expect_same(got, std::span(want).subspan(back * kVocab),
                  "back to " + std::to_string(back) + " after chunks of " + std::to_string(chunk));
    }
}

TEST_F(RecurrentSession, GoesBackTwiceAndForwardAgain) {
  const auto tokens = text(80);
  auto one = session();
  const std::vector<float> want = run(*session(), tokens);
  run(*one, tokens, 9);
  one->rewind(50);
  one->rewind(20);
  run(*one, text(25, 2), 4);
  one->rewind(20);
  expect_same(run(*one, std::span(tokens).subspan(20), 13), std::span(want).subspan(20 * kVocab), "from 20 on");
}

TEST_F(RecurrentSession, SessionsShareNothing) {
  const auto tokens = text(40), other = text(40, 3);
  const std::vector<float> want = run(*session(), tokens), want_other = run(*session(), other);
  auto one = session(), two = session(2);
  std::vector<float> got, got_other;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto a = run(*one, std::span(tokens).subspan(i, 1)), b = run(*two, std::span(other).subspan(i, 1));
    got.insert(got.end(), a.begin(), a.end());
    got_other.insert(got_other.end(), b.begin(), b.end());
  }
  expect_same(got, want, "first session");
  expect_same(got_other, want_other, "second session");
}

TEST_F(RecurrentSession, AStepThatFailsLeavesTheStateAsItWas) {
  const auto tokens = text(30);
  auto one = session(2, KvType::kF16);
  const std::vector<float> want = run(*session(1, KvType::kF16), tokens);
  run(*one, std::span(tokens).first(14));
  // The failure comes in the second batch of 12.
  std::vector<uint32_t> bad = text(20, 4);
  bad[15] = kPoison;
  const auto failed = one->forward(bad, false);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.status().message(), ::testing::HasSubstr("--kv f32"));
  EXPECT_EQ(one->position(), 14u);
  expect_same(run(*one, std::span(tokens).subspan(14)), std::span(want).subspan(14 * kVocab), "after the failure");
}

TEST_F(RecurrentSession, GoesBackWithARingBesideItsStates) {
  std::shared_ptr<const Model> models[2];
  for (const bool ring : {false, true}) {
    const std::string path = folder_.file(ring ? "ring.cqa" : "all.cqa");
    models[ring] = load(path, test::write_recurrent_model(path, 30, ring));
  }
  const auto tokens = text(320), other = text(30, 1);
  for (const size_t chunk : {320u, 7u, 1u})
    for (const uint64_t back : {319u, 300u, 200u, 20u, 0u}) {
      std::vector<float> got[2];
      for (const bool ring : {false, true}) {
        model_ = models[ring];
        auto one = session(2);
        run(*one, tokens, chunk);
        one->rewind(back);
        got[ring] = run(*one, other, 11);
      }
      expect_same(got[1], got[0], "back to " + std::to_string(back) + " after chunks of " + std::to_string(chunk));
    }
}

TEST_F(RecurrentSession, ResetForgetsEverything) {
  auto one = session();
  run(*one, text(50, 5), 8);
  one->reset();
  const auto tokens = text(30);
  expect_same(run(*one, tokens, 6), run(*session(), tokens), "after a reset");
}

} // namespace
} // namespace cortiq::runtime
