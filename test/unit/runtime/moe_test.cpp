// A mixture of experts as the executor runs it: batches against single tokens bit for bit, and both against plain
// arithmetic in doubles. Odd sizes, experts of differing width, experts that nobody chooses, all experts chosen.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "test/unit/runtime/moe_layer.h"
#include "test/unit/runtime/op_runner.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using artifact::BufferKind;
using artifact::Scoring;
using test::MoeCase;
using test::MoeLayer;

// f32 sums of some dozen products of values near 1.
constexpr double kTolerance = 2e-5;

// Where experts run elsewhere too, choices that name none have no pair, and only the experts' sum is made.
TEST(MoeMissing, OnlyNamedExpertsAreSummed) {
  constexpr uint32_t kTokens = 3, kChoices = 2, kExperts = 4, kHidden = 16;
  OpRunner run(kTokens);
  const uint32_t ids = run.slot(kChoices, BufferKind::I32), weights = run.slot(kChoices),
                 plan = run.slot(2 * kExperts + 2 + 2 * kChoices, BufferKind::I32),
                 pairs = run.slot(kHidden, BufferKind::F32, kChoices), residual = run.slot(kHidden),
                 shared = run.slot(kHidden), out = run.slot(kHidden);
  artifact::MoePlanOpT sort;
  sort.ids = ids;
  sort.plan = plan;
  sort.experts = kExperts;
  run.stage(std::move(sort));
  artifact::MoeCombineOpT combine;
  combine.plan = plan;
  combine.experts = kExperts;
  combine.weights = weights;
  combine.pairs = pairs;
  combine.residual = residual;
  combine.shared = shared;
  combine.out = out;
  run.stage(std::move(combine));
  const Status resolved = run.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.message();
  const int32_t chosen[kTokens][kChoices] = {{3, -1}, {-1, -1}, {1, 3}};
  // Pairs by expert: 1 of token 2, 3 of token 0, 3 of token 2; no others have rows.
  const float rows[kTokens * kChoices] = {2, 3, 5, NAN, NAN, NAN};
  for (uint32_t t = 0; t < kTokens; ++t) {
    std::memcpy(run.bytes(ids, t), chosen[t], sizeof(chosen[t]));
    for (uint32_t j = 0; j < kChoices; ++j) {
      run.f32(weights, t)[j] = static_cast<float>(10 * (j + 1));
      std::fill_n(run.f32(pairs, t) + j * kHidden, kHidden, rows[t * kChoices + j]);
    }
    std::fill_n(run.f32(residual, t), kHidden, NAN);
    std::fill_n(run.f32(shared, t), kHidden, NAN);
  }
  run.missing_experts = true;
  run.run(0, kTokens);
  for (uint32_t i = 0; i < kHidden; ++i) {
    EXPECT_EQ(run.f32(out, 0)[i], 30);
    EXPECT_EQ(run.f32(out, 1)[i], 0);
    EXPECT_EQ(run.f32(out, 2)[i], 120);
  }
}

class Moe : public testing::TestWithParam<MoeCase> {};

TEST_P(Moe, BatchesEqualSingleTokensAndTheReference) {
  MoeLayer layer(GetParam());
  const test::TemporaryFolder folder;
  const uint64_t hidden = GetParam().hidden;
  const std::vector<float> x = layer.input(24);
  std::vector<float> first; // of all tokens, whoever made the gates and with however many threads
  for (const bool early : {false, true}) {
    const std::string path = folder.file(early ? "early.cqa" : "moe.cqa");
    const Status written = layer.write(path, early);
    ASSERT_TRUE(written.ok()) << written.message();
    auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (const unsigned threads : {1u, 3u}) {
      auto session = Session::create(*model, {.threads = threads});
      ASSERT_TRUE(session.ok()) << session.status().message();
      for (const uint64_t tokens : {24, 1, 2, 3, 4, 5}) {
        auto together = (*session)->run_vectors(std::span(x).first(tokens * hidden), tokens);
        ASSERT_TRUE(together.ok()) << together.status().message();
        const std::vector<float> batch(together->begin(), together->end());
        if (first.empty())
          first = batch;
        for (uint64_t t = 0; t < tokens; ++t) {
          const MoeLayer::Row want = layer.reference(x.data() + t * hidden);
          for (uint64_t i = 0; i < hidden; ++i) {
            EXPECT_EQ(batch[t * hidden + i], first[t * hidden + i]) << "token " << t << " of " << tokens << ", " << i;
            EXPECT_NEAR(batch[t * hidden + i], want[i], kTolerance * (1 + std::fabs(want[i])))
                << "token " << t << " of " << tokens << ", value " << i;
          }
        }
      }
    }
  }
}

/// The model under the smallest budget that a session of `threads` threads can be made with.
StatusOr<std::unique_ptr<Session>> tightest(const std::string& path, unsigned threads) {
  StatusOr<std::unique_ptr<Session>> session = io_error("no budget was enough");
  for (uint64_t memory = 1; memory < (1 << 24) && !session.ok(); memory += 2048) {
    CORTIQ_ASSIGN_OR_RETURN(auto model, Model::load(path, {.memory = memory}));
    session = Session::create(model, {.threads = threads});
  }
  return session;
}

TEST_P(Moe, AnyBudgetGivesTheSameBits) {
  MoeLayer layer(GetParam());
  const test::TemporaryFolder folder;
  const std::string path = folder.file("moe.cqa");
  ASSERT_TRUE(layer.write(path, /*early=*/true).ok());
  auto model = Model::load(path);
  ASSERT_TRUE(model.ok());
  auto free = Session::create(*model, {.threads = 1});
  ASSERT_TRUE(free.ok());
  EXPECT_EQ((*free)->report(), "");
  for (const unsigned threads : {1u, 3u}) {
    auto session = tightest(path, threads);
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const uint64_t tokens : {1, 24, 2, 1, 5}) {
      const std::vector<float> x = layer.input(tokens);
      auto want = (*free)->run_vectors(x, tokens);
      auto got = (*session)->run_vectors(x, tokens);
      ASSERT_TRUE(want.ok() && got.ok());
      EXPECT_TRUE(std::equal(want->begin(), want->end(), got->begin(), got->end())) << tokens << " tokens";
    }
    EXPECT_THAT((*session)->report(), testing::HasSubstr("uses in memory"));
  }
}

TEST(MoeBudget, NamesTheLeastThatWorks) {
  MoeLayer layer({.choices = 2, .hidden = 256, .widths = {512, 512, 512}});
  const test::TemporaryFolder folder;
  const std::string path = folder.file("moe.cqa");
  ASSERT_TRUE(layer.write(path).ok());
  auto model = Model::load(path, {.memory = 1 << 20});
  ASSERT_TRUE(model.ok());
  const std::string sentence = Session::create(*model, {.threads = 2}).status().message();
  const std::string words = "the least that works is --memory ";
  ASSERT_THAT(sentence, testing::HasSubstr(words));
  const uint64_t least = std::stoull(sentence.substr(sentence.find(words) + words.size())) << 20;
  auto enough = Model::load(path, {.memory = least});
  ASSERT_TRUE(enough.ok());
  EXPECT_TRUE(Session::create(*enough, {.threads = 2}).ok());
  auto less = Model::load(path, {.memory = least - (1 << 20)});
  ASSERT_TRUE(less.ok());
  EXPECT_FALSE(Session::create(*less, {.threads = 2}).ok());
}

// A step then computes anything, but it ends: no expert stays in use that nobody works on any more.
TEST(MoeBudget, AnArtifactThatOverwritesItsPlanEndsItsSteps) {
  MoeLayer layer({.choices = 3, .hidden = 64, .widths = std::vector<uint64_t>(12, 512), .over_plan = true});
  const test::TemporaryFolder folder;
  const std::string path = folder.file("moe.cqa");
  ASSERT_TRUE(layer.write(path).ok());
  for (const unsigned threads : {1u, 3u}) {
    auto session = tightest(path, threads);
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (int i = 0; i < 60; ++i)
      for (const uint64_t tokens : {1, 5, 24})
        EXPECT_TRUE((*session)->run_vectors(layer.input(tokens), tokens).ok());
  }
}

TEST(MoeBudget, AFileCutWhileInUseFailsTheStepOnly) {
  // The experts' last matrices end the file: cutting them leaves everything else that is mapped.
  MoeLayer layer({.choices = 3, .hidden = 64, .widths = std::vector<uint64_t>(8, 1024)});
  const test::TemporaryFolder folder;
  const std::string path = folder.file("moe.cqa");
  ASSERT_TRUE(layer.write(path).ok());
  auto session = tightest(path, 2);
  ASSERT_TRUE(session.ok());
  const std::vector<float> x = layer.input(8);
  ASSERT_TRUE((*session)->run_vectors(x, 8).ok());
  const uint64_t bytes = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, bytes - 100000);
  for (int i = 0; i < 3; ++i) {
    auto cut = (*session)->run_vectors(x, 8);
    ASSERT_FALSE(cut.ok());
    EXPECT_THAT(cut.status().message(), testing::HasSubstr("moe.cqa' was changed while it was in use"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Moe,
    testing::Values(
        MoeCase{.choices = 2, .hidden = 32, .widths = {16, 16, 16, 16}},
        // Odd everything, and as many experts as choices.
        MoeCase{.choices = 5, .hidden = 21, .widths = {7, 33, 16, 1, 20}, .normalize = true, .residual = true},
        // Most experts are never chosen.
        MoeCase{.choices = 1, .hidden = 17, .widths = std::vector<uint64_t>(13, 9), .scales = true, .closed = 11},
        MoeCase{.choices = 3,
                .hidden = 24,
                .widths = {16, 17, 18, 19, 20, 21, 22},
                .scoring = Scoring::Sigmoid,
                .normalize = true,
                .bias = true,
                .shared = true,
                .residual = true,
                .scale = 2.5},
        MoeCase{.choices = 2,
                .hidden = 40,
                .widths = std::vector<uint64_t>(12, 24),
                .scoring = Scoring::Sigmoid,
                .bias = true,
                .shared = true,
                .shared_gate = true,
                .groups = 4,
                .groups_used = 2},
        MoeCase{
            .choices = 2, .hidden = 20, .widths = {30, 30, 30}, .scoring = Scoring::SoftmaxSelected, .biases = true},
        MoeCase{.choices = 2, .hidden = 20, .widths = {30, 30, 30}, .scoring = Scoring::SqrtSoftplus, .bias = true}));

/// Routes and plans on the tokens behind the first two of a batch, as the head of a program does.
class Router {
public:
  Router(uint64_t experts, uint64_t choices) : runner(5) {
    artifact::MoeRouteOpT route;
    logits = route.logits = runner.slot(experts);
    ids = route.ids = runner.slot(choices, BufferKind::I32);
    weights = route.weights = runner.slot(choices);
    runner.stage(route);
    artifact::MoePlanOpT sort;
    sort.ids = ids;
    plan = sort.plan = runner.slot(2 * experts + 2 + 2 * choices, BufferKind::I32);
    sort.experts = static_cast<uint32_t>(experts);
    runner.stage(sort);
    EXPECT_TRUE(runner.resolve().ok());
  }
  const int32_t* words(uint32_t slot, uint64_t token) {
    return reinterpret_cast<const int32_t*>(runner.bytes(slot, token));
  }

  OpRunner runner;
  uint32_t logits, ids, weights, plan;
};

TEST(MoeRoute, EqualScoresGoToTheLowerNumber) {
  Router router(6, 3);
  std::copy_n(std::vector<float>{1, 2, 1, 2, 1, 1}.begin(), 6, router.runner.f32(router.logits, 2));
  router.runner.run(2, 1);
  EXPECT_EQ(std::vector<int32_t>(router.words(router.ids, 2), router.words(router.ids, 2) + 3),
            (std::vector<int32_t>{1, 3, 0}));
}

TEST(MoeRoute, LogitsThatAreNoNumbersStillNameDistinctExperts) {
  Router router(4, 4);
  std::copy_n(std::vector<float>{NAN, -INFINITY, NAN, 1}.begin(), 4, router.runner.f32(router.logits, 2));
  router.runner.run(2, 1);
  std::vector<int32_t> ids(router.words(router.ids, 2), router.words(router.ids, 2) + 4);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(MoePlan, SortsPairsByExpertAndKeepsTheirOrder) {
  Router router(5, 2);
  const std::vector<std::vector<float>> logits = {{0, 9, 0, 8, 0}, {0, 8, 0, 0, 9}, {0, 9, 0, 8, 0}};
  for (uint64_t t = 0; t < 3; ++t)
    std::copy_n(logits[t].begin(), 5, router.runner.f32(router.logits, 2 + t));
  router.runner.run(2, 3);
  const int32_t* words = router.words(router.plan, 2);
  const std::vector<int32_t> want = {3,                 // experts in use
                                     1, 3, 4, 0, 0,     // their numbers; what stands behind is of no meaning
                                     0, 0, 3, 3, 5, 6,  // first pairs
                                     0, 1, 2, 0, 2, 1,  // tokens
                                     0, 3, 5, 1, 2, 4}; // pairs of the choices
  for (size_t i = 0; i < want.size(); ++i)
    if (i != 4 && i != 5)
      EXPECT_EQ(words[i], want[i]) << i;
}

TEST(MoePlan, WhateverStandsInItStaysWithinTheBatch) {
  for (const uint8_t byte : {0x00, 0x7f, 0x80, 0xff}) {
    OpRunner runner(3);
    const uint32_t plan = runner.slot(2 * 4 + 2 + 2 * 2, BufferKind::I32), x = runner.slot(16),
                   weights = runner.slot(2);
    const uint32_t pairs = runner.slot(16, BufferKind::F32, 2), out = runner.slot(16);
    artifact::MoeGatherOpT gather;
    gather.plan = plan;
    gather.experts = 4;
    gather.x = x;
    gather.out = pairs;
    runner.stage(std::move(gather));
    artifact::MoeGluOpT glu;
    glu.plan = plan;
    glu.gate = glu.up = glu.out = pairs;
    glu.widths = {16, 3, 5, 16};
    runner.stage(std::move(glu));
    artifact::MoeCombineOpT combine;
    combine.plan = plan;
    combine.experts = 4;
    combine.weights = weights;
    combine.pairs = pairs;
    combine.out = out;
    runner.stage(std::move(combine));
    ASSERT_TRUE(runner.resolve().ok());
    std::fill_n(runner.bytes(plan, 0), 3 * 64, byte);
    runner.run(0, 3);
    for (uint64_t t = 0; t < 3; ++t)
      EXPECT_EQ(runner.f32(out, t)[0], 0) << "all inputs are zero, whichever were taken";
  }
}

TEST(MoeGlu, MakesGatesOfRowsThatAreGiven) {
  OpRunner runner(1);
  const uint32_t plan = runner.slot(2 * 2 + 2 + 2 * 2, BufferKind::I32);
  artifact::MoeGluOpT glu;
  glu.plan = plan;
  glu.gate = runner.slot(64, BufferKind::F32, 2);
  glu.up = runner.slot(64, BufferKind::F32, 2);
  glu.act_out = runner.slot(64, BufferKind::Q8Act, 2);
  glu.widths = {64, 32};
  const uint32_t gate = glu.gate, up = glu.up, act = glu.act_out;
  runner.stage(std::move(glu));
  ASSERT_TRUE(runner.resolve().ok());
  const std::vector<int32_t> words = {2, 0, 1, 0, 1, 2, 0, 0, 0, 1}; // a pair for each of the two experts
  std::memcpy(runner.bytes(plan, 0), words.data(), words.size() * sizeof(int32_t));
  for (int i = 0; i < 128; ++i) { // silu(0) = 0; else 50 and more are what they are
    runner.f32(gate, 0)[i] = i % 64 == 5 ? 127.0f : i % 64 == 6 ? 64.0f : 0.0f;
    runner.f32(up, 0)[i] = 2;
  }
  runner.run(0, 1);
  const formats::Q8ActLayout layout = formats::q8_act_layout(64);
  for (int pair = 0; pair < 2; ++pair) {
    const uint8_t* record = runner.bytes(act, 0) + pair * layout.bytes;
    float scale;
    std::memcpy(&scale, record + formats::q8_act_layout(pair ? 32 : 64).scale, sizeof(scale));
    EXPECT_EQ(scale, 2.0f);
    EXPECT_EQ(static_cast<int8_t>(record[5]), 127);
    EXPECT_EQ(static_cast<int8_t>(record[6]), 64);
    EXPECT_EQ(static_cast<int8_t>(record[7]), 0);
  }
}

TEST(MoeOps, RefuseWhatDoesNotFit) {
  OpRunner runner(1);
  artifact::MoePlanOpT sort;
  sort.ids = runner.slot(2, BufferKind::I32);
  sort.plan = runner.slot(9, BufferKind::I32); // 4 experts and 2 choices need 14
  sort.experts = 4;
  runner.stage(sort);
  EXPECT_FALSE(runner.resolve().ok());
}

} // namespace
} // namespace cortiq::runtime
