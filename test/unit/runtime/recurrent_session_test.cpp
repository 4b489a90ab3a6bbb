// A session of a model with recurrent state: batches, the way back, and steps that fail.

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "runtime/session/session.h"
#include "test/unit/runtime/artifact_builder.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

constexpr uint32_t kVocab = 29;
constexpr uint32_t kPoison = 28; ///< a token whose keys do not fit an f16 cache

/// Embedding, short convolution, gated delta, attention, head. No norms: values stay as they come. With a window the
/// cache is a ring, or, for comparison, one that keeps everything.
Status write_model(const std::string& path, uint32_t window = 0, bool ring = false) {
  constexpr uint64_t kHidden = 24, kKeyHeads = 2, kValueHeads = 4, kDim = 8, kHeads = 2;
  constexpr uint64_t kQkv = (2 * kKeyHeads + kValueHeads) * kDim, kValues = kValueHeads * kDim;
  test::ArtifactBuilder b(/*max_batch=*/12);
  std::mt19937 random(3);
  auto numbers = [&](uint64_t count, float spread) {
    std::uniform_real_distribution<float> distribution(-spread, spread);
    std::vector<float> out(count);
    for (float& value : out)
      value = distribution(random);
    return out;
  };
  int names = 0;
  auto matrix = [&](uint64_t rows, uint64_t cols) {
    return b.matrix("m" + std::to_string(names++), rows, cols, numbers(rows * cols, 0.5f));
  };
  auto vector = [&](uint64_t count) { return b.vector("v" + std::to_string(names++), numbers(count, 1)); };
  auto state = [&](uint64_t count) {
    b.program.states.push_back(count);
    return static_cast<uint32_t>(b.program.states.size() - 1);
  };
  auto matmul = [&](uint32_t in, std::initializer_list<std::pair<uint32_t, uint64_t>> outs, uint64_t cols,
                    bool head = false) {
    artifact::MatmulOpT op;
    for (const auto& [slot, rows] : outs)
      op.parts.push_back(std::make_unique<artifact::MatmulPartT>(b.matmul(matrix(rows, cols), in, slot)));
    b.stage(std::move(op), head);
  };
  const uint32_t x = b.slot(kHidden), bcx = b.slot(3 * kHidden), s = b.slot(kHidden), qkv = b.slot(kQkv),
                 z = b.slot(kValues), a = b.slot(kValueHeads), beta = b.slot(kValueHeads), u = b.slot(kQkv),
                 g = b.slot(kValues), q = b.slot(kHeads * kDim), k = b.slot(kHeads * kDim), v = b.slot(kHeads * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kVocab);
  std::vector<float> embedding = numbers(kVocab * kHidden, 1);
  std::fill(embedding.begin() + kPoison * kHidden, embedding.end(), 1e5f);
  artifact::EmbedOpT embed;
  embed.weight = b.matrix("embed", kVocab, kHidden, embedding);
  embed.out = x;
  b.stage(std::move(embed));
  matmul(x, {{bcx, 3 * kHidden}}, kHidden);
  artifact::ShortConvOpT short_conv;
  short_conv.input = bcx;
  short_conv.weight = vector(kHidden * 3);
  short_conv.state = state(2 * kHidden);
  short_conv.out = s;
  short_conv.taps = 3;
  b.stage(std::move(short_conv));
  matmul(s, {{qkv, kQkv}, {z, kValues}, {a, kValueHeads}, {beta, kValueHeads}}, kHidden);
  artifact::CausalConvOpT conv;
  conv.input = qkv;
  conv.weight = vector(kQkv * 4);
  conv.state = state(3 * kQkv);
  conv.out = u;
  conv.taps = 4;
  conv.silu = true;
  b.stage(std::move(conv));
  artifact::GatedDeltaOpT delta;
  delta.qkv = u;
  delta.z = z;
  delta.a = a;
  delta.b = beta;
  delta.decay = vector(kValueHeads);
  delta.dt_bias = vector(kValueHeads);
  delta.norm = vector(kDim);
  delta.state = state(kValueHeads * kDim * kDim);
  delta.out = g;
  delta.key_heads = kKeyHeads;
  delta.value_heads = kValueHeads;
  delta.key_dim = delta.value_dim = kDim;
  delta.eps = 1e-6f;
  b.stage(std::move(delta));
  matmul(g, {{q, kHeads * kDim}, {k, kHeads * kDim}, {v, kHeads * kDim}}, kValues);
  auto kv = std::make_unique<artifact::KvLayerT>();
  kv->kv_heads = kHeads;
  kv->k_dim = kv->v_dim = kDim;
  kv->window = window;
  kv->ring = ring;
  b.program.kv_layers.push_back(std::move(kv));
  artifact::AttentionPrepOpT prep;
  prep.q = q;
  prep.k = k;
  prep.v = v;
  prep.heads = kHeads;
  prep.head_dim = kDim;
  b.stage(std::move(prep));
  artifact::AttentionOpT attention;
  attention.q = q;
  attention.heads = kHeads;
  attention.head_dim = kDim;
  attention.scale = 0.3f;
  attention.out = attended;
  b.stage(std::move(attention));
  matmul(attended, {{logits, kVocab}}, kHeads * kDim, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kVocab;
  b.manifest.max_context = 400;
  return b.write(path);
}

class RecurrentSession : public ::testing::Test {
protected:
  void SetUp() override {
    const Status written = write_model(folder_.file("m.cqa"));
    ASSERT_TRUE(written.ok()) << written.message();
    auto model = Model::load(folder_.file("m.cqa"));
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
  }

  std::unique_ptr<Session> session(unsigned threads = 1, KvType kv = KvType::kF32) {
    SessionOptions options;
    options.threads = threads;
    options.kv = kv;
    auto made = Session::create(model_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  static std::vector<uint32_t> text(size_t count, uint32_t seed = 0) {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < count; ++i)
      out.push_back(static_cast<uint32_t>((i * i * 5 + i * 3 + seed * 7 + 1) % (kVocab - 1)));
    return out;
  }

  static std::vector<float> run(Session& session, std::span<const uint32_t> tokens, size_t chunk = 1000) {
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
    ASSERT_TRUE(write_model(path, 30, ring).ok());
    auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    models[ring] = *model;
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
