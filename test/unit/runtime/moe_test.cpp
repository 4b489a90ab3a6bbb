// A mixture of experts as the executor runs it: batches against single tokens bit for bit, and both against plain
// arithmetic in doubles. Odd sizes, experts of differing width, experts that nobody chooses, all experts chosen.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "runtime/session/session.h"
#include "test/unit/runtime/artifact_builder.h"
#include "test/unit/runtime/op_runner.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using artifact::BufferKind;
using artifact::Scoring;
using Row = std::vector<double>;

constexpr uint64_t kBatch = 24;
// f32 sums of some dozen products of values near 1.
constexpr double kTolerance = 2e-5;

struct Case {
  uint64_t choices, hidden;
  std::vector<uint64_t> widths; ///< one an expert
  Scoring scoring = Scoring::Softmax;
  bool normalize = false, bias = false, scales = false, shared = false, shared_gate = false, residual = false,
       biases = false;
  uint64_t groups = 1, groups_used = 1;
  double scale = 1;
  uint64_t closed = 0;    ///< experts whose logits are far below all others
  bool over_plan = false; ///< the products of gate are laid over the plan, as no compiler does
};

/// The layer's weights as floats, the artifact made of them, and what it should compute.
class Layer {
public:
  explicit Layer(const Case& c) : c_(c), experts_(c.widths.size()) {
    make("router", experts_ * c.hidden);
    for (uint64_t e = 0; e < experts_; ++e) {
      make("gate" + std::to_string(e), c.widths[e] * c.hidden);
      make("up" + std::to_string(e), c.widths[e] * c.hidden);
      make("down" + std::to_string(e), c.hidden * c.widths[e]);
      make("gate_bias" + std::to_string(e), c.widths[e]);
      make("down_bias" + std::to_string(e), c.hidden);
    }
    make("bias", experts_);
    make("scales", experts_);
    make("router_bias", experts_);
    for (uint64_t e = 0; e < experts_; ++e)
      weights_["router_bias"][e] = e < c.closed ? -1000.0f : 0.0f;
    make("shared0", kShared * c.hidden);
    make("shared1", kShared * c.hidden);
    make("shared2", c.hidden * kShared);
    make("shared_gate", c.hidden);
  }

  /// `early`: gates may be made where their rows are; else their buffer lies over what the rows are made of.
  Status write(const std::string& path, bool early = false);
  Row reference(const float* x) const;
  std::vector<float> input(uint64_t tokens) {
    std::vector<float> x(tokens * c_.hidden);
    for (float& value : x)
      value = normal_(random_);
    return x;
  }

private:
  static constexpr uint64_t kShared = 19;

  void make(const std::string& name, uint64_t count) {
    std::vector<float>& values = weights_[name];
    values.resize(count);
    for (float& value : values)
      value = 0.3f * normal_(random_);
  }
  Row product(const std::string& name, const Row& x) const {
    const std::vector<float>& w = weights_.at(name);
    Row y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r)
      for (size_t i = 0; i < x.size(); ++i)
        y[r] += static_cast<double>(w[r * x.size() + i]) * x[i];
    return y;
  }
  void add(Row& y, const std::string& name) const {
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += weights_.at(name)[i];
  }
  Row block(const std::string& gate, const std::string& up, const std::string& down, const Row& x,
            const std::string& expert) const {
    Row a = product(gate, x);
    if (!expert.empty())
      add(a, "gate_bias" + expert);
    const Row b = product(up, x);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
    Row y = product(down, a);
    if (!expert.empty())
      add(y, "down_bias" + expert);
    return y;
  }
  std::vector<uint64_t> choose(const Row& key) const;

  Case c_;
  uint64_t experts_;
  std::map<std::string, std::vector<float>> weights_;
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

Status Layer::write(const std::string& path, bool early) {
  test::ArtifactBuilder b(kBatch);
  const uint32_t x = b.slot(c_.hidden), logits = b.slot(experts_), ids = b.slot(c_.choices, BufferKind::I32),
                 weights = b.slot(c_.choices), plan = b.slot(2 * experts_ + 2 + 2 * c_.choices, BufferKind::I32);
  const auto k = static_cast<uint32_t>(c_.choices);
  const uint64_t widest = *std::max_element(c_.widths.begin(), c_.widths.end());
  const uint32_t pairs = b.slot(c_.hidden, BufferKind::F32, k);
  b.slot(widest, BufferKind::F32, k); // room behind the pairs
  const uint32_t gate = b.slot(widest, BufferKind::F32, k), up = b.slot(widest, BufferKind::F32, k),
                 gated = b.slot(widest, BufferKind::F32, k), down = b.slot(c_.hidden, BufferKind::F32, k),
                 out = b.slot(c_.hidden);
  if (!early)
    b.program.buffers[gated]->offset_per_token = b.program.buffers[pairs]->offset_per_token;
  if (c_.over_plan)
    b.program.buffers[gate]->offset_per_token = b.program.buffers[plan]->offset_per_token;
  auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    return b.matrix(name, rows, cols, weights_.at(name));
  };
  auto product = [&](uint32_t weight, uint32_t input, uint32_t output, uint32_t bias = 0xffffffff) {
    artifact::MatmulOpT op;
    op.parts.push_back(std::make_unique<artifact::MatmulPartT>(b.matmul(weight, input, output, bias)));
    b.stage(std::move(op));
  };
  product(matrix("router", experts_, c_.hidden), x, logits, b.vector("router_bias", weights_.at("router_bias")));
  artifact::MoeRouteOpT route;
  route.logits = logits;
  route.ids = ids;
  route.weights = weights;
  route.scoring = c_.scoring;
  route.normalize = c_.normalize;
  route.norm_epsilon = 1e-6;
  route.scale = c_.scale;
  route.groups = static_cast<uint32_t>(c_.groups);
  route.groups_used = static_cast<uint32_t>(c_.groups_used);
  if (c_.bias)
    route.bias = b.vector("bias", weights_.at("bias"));
  if (c_.scales)
    route.scales = b.vector("scales", weights_.at("scales"));
  b.stage(std::move(route));
  artifact::MoePlanOpT sort;
  sort.ids = ids;
  sort.plan = plan;
  sort.experts = static_cast<uint32_t>(experts_);
  b.stage(std::move(sort));
  artifact::MoeGatherOpT gather;
  gather.plan = plan;
  gather.experts = static_cast<uint32_t>(experts_);
  gather.x = x;
  gather.out = pairs;
  b.stage(std::move(gather));
  auto role = [&](const std::string& name, uint32_t input, uint32_t token, uint32_t output) {
    artifact::MoeMatmulOpT op;
    op.plan = plan;
    for (uint64_t e = 0; e < experts_; ++e) {
      const std::string expert = std::to_string(e);
      const uint64_t width = c_.widths[e];
      const uint32_t weight =
          name == "down" ? matrix(name + expert, c_.hidden, width) : matrix(name + expert, width, c_.hidden);
      const uint32_t bias = c_.biases && name != "up"
                                ? b.vector(name + "_bias" + expert, weights_.at(name + "_bias" + expert))
                                : 0xffffffff;
      op.parts.push_back(std::make_unique<artifact::ExpertPartT>(b.expert(weight, input, token, output, bias)));
    }
    return op;
  };
  artifact::MoeMatmulOpT gates = role("gate", pairs, x, gate), ups = role("up", pairs, x, up);
  b.begin_stage(false);
  b.call(std::move(gates));
  b.call(std::move(ups));
  artifact::MoeGluOpT glu;
  glu.plan = plan;
  glu.gate = gate;
  glu.up = up;
  glu.out = gated;
  glu.widths = c_.widths;
  b.stage(std::move(glu));
  b.stage(role("down", gated, 0xffffffff, down));
  artifact::MoeCombineOpT combine;
  combine.plan = plan;
  combine.experts = static_cast<uint32_t>(experts_);
  combine.weights = weights;
  combine.pairs = down;
  combine.out = out;
  if (c_.residual)
    combine.residual = x;
  if (c_.shared) {
    const uint32_t a = b.slot(kShared), u = b.slot(kShared);
    combine.shared = b.slot(c_.hidden);
    product(matrix("shared0", kShared, c_.hidden), x, a);
    product(matrix("shared1", kShared, c_.hidden), x, u);
    artifact::GluOpT shared;
    shared.gate = a;
    shared.up = u;
    shared.out = a;
    b.stage(std::move(shared));
    product(matrix("shared2", c_.hidden, kShared), a, combine.shared);
    if (c_.shared_gate) {
      combine.shared_gate = b.slot(1);
      product(matrix("shared_gate", 1, c_.hidden), x, combine.shared_gate);
    }
  }
  b.stage(std::move(combine));
  b.program.logits = out;
  b.manifest.vocab = static_cast<uint32_t>(c_.hidden);
  b.manifest.max_context = 64;
  return b.write(path);
}

std::vector<uint64_t> Layer::choose(const Row& key) const {
  auto best = [](std::vector<uint64_t> candidates, auto value, uint64_t count) {
    std::sort(candidates.begin(), candidates.end(),
              [&](uint64_t a, uint64_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
    candidates.resize(std::min<size_t>(candidates.size(), count));
    return candidates;
  };
  const uint64_t size = experts_ / c_.groups;
  auto members = [&](uint64_t group) {
    std::vector<uint64_t> list(size);
    std::iota(list.begin(), list.end(), group * size);
    return list;
  };
  auto expert_key = [&](uint64_t e) { return key[e]; };
  std::vector<uint64_t> groups(c_.groups), open;
  std::iota(groups.begin(), groups.end(), 0);
  for (uint64_t group : best(
           groups,
           [&](uint64_t g) {
             double sum = 0;
             for (uint64_t e : best(members(g), expert_key, 2))
               sum += key[e];
             return sum;
           },
           c_.groups_used))
    for (uint64_t e : members(group))
      open.push_back(e);
  std::sort(open.begin(), open.end());
  return best(open, expert_key, c_.choices);
}

Row Layer::reference(const float* input) const {
  const Row x(input, input + c_.hidden);
  Row scores = product("router", x);
  add(scores, "router_bias");
  if (c_.scoring == Scoring::Softmax) {
    double sum = 0;
    for (double& s : scores)
      sum += s = std::exp(s);
    for (double& s : scores)
      s /= sum;
  } else if (c_.scoring == Scoring::Sigmoid) {
    for (double& s : scores)
      s = 1 / (1 + std::exp(-s));
  } else if (c_.scoring == Scoring::SqrtSoftplus) {
    for (double& s : scores)
      s = std::sqrt(std::log1p(std::exp(s)));
  }
  Row key = scores;
  if (c_.bias)
    add(key, "bias");
  const std::vector<uint64_t> chosen = choose(key);
  Row weights;
  double sum = 0;
  for (uint64_t e : chosen) {
    weights.push_back(c_.scoring == Scoring::SoftmaxSelected ? std::exp(scores[e]) : scores[e]);
    sum += weights.back();
  }
  Row y(c_.hidden);
  for (size_t j = 0; j < chosen.size(); ++j) {
    const std::string e = std::to_string(chosen[j]);
    double weight = weights[j] * c_.scale;
    if (c_.normalize || c_.scoring == Scoring::SoftmaxSelected)
      weight /= sum;
    if (c_.scales)
      weight *= weights_.at("scales")[chosen[j]];
    const Row part = block("gate" + e, "up" + e, "down" + e, x, c_.biases ? e : "");
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += weight * part[i];
  }
  if (c_.shared) {
    const double gate = c_.shared_gate ? 1 / (1 + std::exp(-product("shared_gate", x)[0])) : 1;
    const Row part = block("shared0", "shared1", "shared2", x, "");
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += gate * part[i];
  }
  for (size_t i = 0; c_.residual && i < y.size(); ++i)
    y[i] += x[i];
  return y;
}

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

class Moe : public testing::TestWithParam<Case> {};

TEST_P(Moe, BatchesEqualSingleTokensAndTheReference) {
  Layer layer(GetParam());
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
          const Row want = layer.reference(x.data() + t * hidden);
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
  Layer layer(GetParam());
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
  Layer layer({.choices = 2, .hidden = 256, .widths = {512, 512, 512}});
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
  Layer layer({.choices = 3, .hidden = 64, .widths = std::vector<uint64_t>(12, 512), .over_plan = true});
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
  Layer layer({.choices = 3, .hidden = 64, .widths = std::vector<uint64_t>(8, 1024)});
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
        Case{.choices = 2, .hidden = 32, .widths = {16, 16, 16, 16}},
        // Odd everything, and as many experts as choices.
        Case{.choices = 5, .hidden = 21, .widths = {7, 33, 16, 1, 20}, .normalize = true, .residual = true},
        // Most experts are never chosen.
        Case{.choices = 1, .hidden = 17, .widths = std::vector<uint64_t>(13, 9), .scales = true, .closed = 11},
        Case{.choices = 3,
             .hidden = 24,
             .widths = {16, 17, 18, 19, 20, 21, 22},
             .scoring = Scoring::Sigmoid,
             .normalize = true,
             .bias = true,
             .shared = true,
             .residual = true,
             .scale = 2.5},
        Case{.choices = 2,
             .hidden = 40,
             .widths = std::vector<uint64_t>(12, 24),
             .scoring = Scoring::Sigmoid,
             .bias = true,
             .shared = true,
             .shared_gate = true,
             .groups = 4,
             .groups_used = 2},
        Case{.choices = 2, .hidden = 20, .widths = {30, 30, 30}, .scoring = Scoring::SoftmaxSelected, .biases = true},
        Case{.choices = 2, .hidden = 20, .widths = {30, 30, 30}, .scoring = Scoring::SqrtSoftplus, .bias = true}));

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
