// Gates made beside their products: the same bits as in a stage of their own, and only where nobody notices.

#include "runtime/ops/gate_stages.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "runtime/loader/load.h"
#include "runtime/session/session.h"
#include "test/unit/runtime/artifact_builder.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using test::ArtifactBuilder;

constexpr uint64_t kTokens = 300; // more than an item keeps
constexpr uint64_t kFew = 63;     // too few to make gates together

/// A block of gate, up, gates and down; what differs between models.
struct Form {
  const char* name;
  uint64_t width;          ///< of the gates
  bool together;           ///< whether gates are made beside the products
  bool over_input = false; ///< the gates stand where the products read
  bool used_again = false; ///< the down product reads what gate gave, not the gates
};
constexpr uint64_t kHidden = 48;
const Form kForms[] = {{"whole_items", 96, true},
                       {"a_short_last_item", 75, true},
                       {"one_group", 16, true},
                       {"over_input", kHidden, false, true},
                       {"used_again", 64, false, false, true}};

std::vector<float> random_floats(uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.5f);
  std::vector<float> out(count);
  for (float& x : out)
    x = normal(random);
  return out;
}

class GateStages : public ::testing::TestWithParam<Form> {
protected:
  void SetUp() override {
    const Form& form = GetParam();
    const uint64_t n = form.width;
    ArtifactBuilder b(kTokens);
    const uint32_t x = b.slot(kHidden), gate = b.slot(n), up = b.slot(n), act = form.over_input ? x : b.slot(n),
                   y = b.slot(kHidden);
    auto matrix = [&](const char* name, uint64_t rows, uint64_t cols, unsigned seed) {
      return b.matrix(name, rows, cols, random_floats(rows * cols, seed));
    };
    artifact::MatmulOpT products, down;
    auto add = [](artifact::MatmulOpT& op, artifact::MatmulPartT part) {
      op.parts.push_back(std::make_unique<artifact::MatmulPartT>(std::move(part)));
    };
    add(products, b.matmul(matrix("gate", n, kHidden, 1), x, gate, b.vector("bias", random_floats(n, 2))));
    add(products, b.matmul(matrix("up", n, kHidden, 3), x, up));
    b.stage(std::move(products));
    artifact::GluOpT glu;
    glu.gate = gate;
    glu.up = up;
    glu.out = act;
    glu.activation = artifact::Activation::Silu;
    b.stage(std::move(glu));
    add(down, b.matmul(matrix("down", kHidden, n, 4), form.used_again ? gate : act, y));
    b.stage(std::move(down));
    b.program.logits = y;
    b.manifest.vocab = kHidden;
    b.manifest.max_context = kTokens;
    const Status written = b.write(path_);
    ASSERT_TRUE(written.ok()) << written.message();
  }

  /// Results of kTokens tokens, `each` at a time.
  std::vector<float> run(unsigned threads, uint64_t each) {
    auto model = Model::load(path_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    auto session = Session::create(*model, {.threads = threads});
    EXPECT_TRUE(session.ok()) << session.status().message();
    const std::vector<float> input = random_floats(kTokens * kHidden, 5);
    std::vector<float> out;
    for (uint64_t done = 0; done < kTokens; done += each) {
      const uint64_t count = std::min(each, kTokens - done);
      auto some = (*session)->run_vectors(std::span(input).subspan(done * kHidden, count * kHidden), count);
      EXPECT_TRUE(some.ok()) << some.status().message();
      out.insert(out.end(), some->begin(), some->end());
    }
    return out;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("block.cqa");
};

TEST_P(GateStages, ManyTokensGiveTheBitsOfFew) {
  const std::vector<float> want = run(1, kFew);
  ASSERT_EQ(want.size(), kTokens * kHidden);
  for (const unsigned threads : {1u, 3u})
    for (const uint64_t each : {uint64_t{64}, uint64_t{150}, kTokens}) {
      const std::vector<float> got = run(threads, each);
      ASSERT_EQ(got.size(), want.size());
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << threads << ", " << each;
    }
}

TEST_P(GateStages, AreJoinedOnlyWhereNobodyNotices) {
  const auto loaded = load_artifact(path_, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<Stage>& stages = (*loaded)->program.stages;
  auto items = [&](size_t stage, size_t call, uint64_t tokens) {
    return stages[stage].calls[call]->items({0, tokens, 3});
  };
  const bool together = GetParam().together;
  EXPECT_EQ(items(0, 1, kTokens) == 0, together); // up's
  EXPECT_EQ(items(1, 0, kTokens) == 0, together); // the gates'
  EXPECT_NE(items(0, 0, kTokens), 0);
  EXPECT_NE(items(0, 1, kFew), 0);
  EXPECT_NE(items(1, 0, kFew), 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, GateStages, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });

} // namespace
} // namespace cortiq::runtime
