// Caches that are rings: the logits of a cache that keeps everything, in memory that does not depend on the context.

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "runtime/session/session.h"
#include "test/unit/runtime/artifact_builder.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

constexpr uint32_t kVocab = 31, kWindow = 70, kBatch = 24;
constexpr uint64_t kLong = 600; // several times around a ring of 70 + 24 positions, rounded up to 128

/// Two layers of windowed attention, the second with a window a key/value head, over an embedding.
Status write_model(const std::string& path, bool ring, uint64_t max_context = kLong, uint32_t window = kWindow) {
  constexpr uint64_t kHidden = 32, kHeads = 4, kKv = 2, kDim = 8;
  test::ArtifactBuilder b(kBatch);
  std::mt19937 random(5);
  int names = 0;
  auto matrix = [&](uint64_t rows, uint64_t cols, float spread) {
    std::uniform_real_distribution<float> distribution(-spread, spread);
    std::vector<float> values(rows * cols);
    for (float& value : values)
      value = distribution(random);
    return b.matrix("m" + std::to_string(names++), rows, cols, values);
  };
  const uint32_t x = b.slot(kHidden), q = b.slot(kHeads * kDim), k = b.slot(kKv * kDim), v = b.slot(kKv * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kVocab);
  auto matmul = [&](std::initializer_list<artifact::MatmulPartT> parts, bool head = false) {
    artifact::MatmulOpT op;
    for (const artifact::MatmulPartT& part : parts)
      op.parts.push_back(std::make_unique<artifact::MatmulPartT>(part));
    b.stage(std::move(op), head);
  };
  artifact::EmbedOpT embed;
  embed.weight = matrix(kVocab, kHidden, 1);
  embed.out = x;
  b.stage(std::move(embed));
  auto rope = std::make_unique<artifact::RopeTableT>();
  rope->inverse_frequencies = {1, 0.3f, 0.1f, 0.03f};
  b.program.rope_tables.push_back(std::move(rope));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    auto kv = std::make_unique<artifact::KvLayerT>();
    kv->kv_heads = kKv;
    kv->k_dim = kv->v_dim = kDim;
    kv->window = window;
    kv->ring = ring;
    b.program.kv_layers.push_back(std::move(kv));
    matmul({b.matmul(matrix(kHeads * kDim, kHidden, 0.4f), x, q), b.matmul(matrix(kKv * kDim, kHidden, 0.4f), x, k),
            b.matmul(matrix(kKv * kDim, kHidden, 0.4f), x, v)});
    artifact::AttentionPrepOpT prep;
    prep.q = q;
    prep.k = k;
    prep.v = v;
    prep.layer = layer;
    prep.heads = kHeads;
    prep.head_dim = kDim;
    prep.rope = 0;
    b.stage(std::move(prep));
    artifact::AttentionOpT attention;
    attention.q = q;
    attention.layer = layer;
    attention.heads = kHeads;
    attention.head_dim = kDim;
    attention.scale = 0.5f;
    attention.out = attended;
    if (layer == 1)
      attention.group_windows = {3, kWindow};
    b.stage(std::move(attention));
    matmul({b.matmul(matrix(kHidden, kHeads * kDim, 0.4f), attended, x, 0xffffffff, x)});
  }
  matmul({b.matmul(matrix(kVocab, kHidden, 0.4f), x, logits)}, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kVocab;
  b.manifest.max_context = max_context;
  return b.write(path);
}

class RingCache : public ::testing::Test {
protected:
  std::shared_ptr<const Model> load(bool ring, uint64_t max_context = kLong) {
    const std::string path = folder_.file("m" + std::to_string(ring) + std::to_string(max_context) + ".cqa");
    const Status written = write_model(path, ring, max_context);
    EXPECT_TRUE(written.ok()) << written.message();
    auto model = Model::load(path);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return *model;
  }

  std::unique_ptr<Session> session(bool ring, KvType kv = KvType::kF32, uint64_t max_context = kLong) {
    SessionOptions options;
    options.threads = 2;
    options.kv = kv;
    auto made = Session::create(load(ring, max_context), options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  static std::vector<uint32_t> text(size_t count, uint32_t seed = 0) {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < count; ++i)
      out.push_back(static_cast<uint32_t>((i * i * 5 + i * 3 + seed * 7 + 1) % kVocab));
    return out;
  }

  static std::vector<float> run(Session& session, std::span<const uint32_t> tokens, size_t chunk = 10000) {
    std::vector<float> out;
    for (size_t i = 0; i < tokens.size(); i += chunk) {
      const auto logits = session.forward(tokens.subspan(i, std::min(chunk, tokens.size() - i)), true);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      if (logits.ok())
        out.insert(out.end(), logits->begin(), logits->end());
    }
    return out;
  }

  static void expect_same(std::span<const float> got, std::span<const float> want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size_bytes()), 0) << what;
  }

  test::TemporaryFolder folder_;
};

TEST_F(RingCache, GivesTheLogitsOfACacheThatKeepsEverything) {
  const auto tokens = text(kLong);
  for (const KvType kv : {KvType::kF32, KvType::kF16}) {
    const std::vector<float> want = run(*session(false, kv), tokens);
    for (const size_t chunk : {1u, 7u, 24u, 200u, 600u}) // also longer than the window
      expect_same(run(*session(true, kv), tokens, chunk), want, "chunks of " + std::to_string(chunk));
  }
}

TEST_F(RingCache, GoesBackToAnyPosition) {
  const auto tokens = text(kLong - 50), other = text(50, 1);
  auto one = session(true), all = session(false);
  for (const uint64_t back : {549u, 540u, 510u, 490u, 300u, 100u, 1u, 0u}) { // within the ring, and beyond
    one->reset();
    all->reset();
    run(*one, tokens, 40);
    run(*all, tokens, 40);
    one->rewind(back);
    all->rewind(back);
    expect_same(run(*one, other, 11), run(*all, other, 11), "back to " + std::to_string(back));
  }
}

TEST_F(RingCache, TakesTheSameMemoryWhateverTheContext) {
  EXPECT_EQ(session(true, KvType::kF32, 100'000)->reserved_bytes(), session(true)->reserved_bytes());
  EXPECT_GT(session(false, KvType::kF32, 100'000)->reserved_bytes(), session(false)->reserved_bytes());
}

TEST_F(RingCache, RefusesARingWithoutAWindow) {
  ASSERT_TRUE(write_model(folder_.file("bad.cqa"), true, kLong, 0).ok());
  const auto model = Model::load(folder_.file("bad.cqa"));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("a ring without a window"), std::string::npos) << model.status().message();
}

} // namespace
} // namespace cortiq::runtime
