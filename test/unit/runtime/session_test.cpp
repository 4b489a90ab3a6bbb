#include "runtime/session/session.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "formats/codec/codec.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using test::relative_error;
using test::TinyModel;
using ::testing::HasSubstr;

// Sums of 56 f32 products through two layers, against doubles.
constexpr double kF32Error = 2e-5;
// Keys and values carry 11 bits.
constexpr double kF16Error = 5e-3;
// Or 7 bits of the largest of 32.
constexpr double kQ8Error = 2e-2;

std::vector<uint32_t> some_tokens(size_t count) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(static_cast<uint32_t>((i * i * 7 + i * 3 + 5) % TinyModel::kVocab));
  return out;
}

class SessionTest : public ::testing::Test {
protected:
  void SetUp() override { load(TinyModel()); }

  void load(TinyModel tiny) {
    const Status written = tiny.write(folder_.file("m.cqa"));
    ASSERT_TRUE(written.ok()) << written.message();
    auto model = Model::load(folder_.file("m.cqa"));
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
  }

  std::unique_ptr<Session> session(unsigned threads = 1, std::optional<KvType> kv = KvType::kF32, uint64_t context = 0,
                                   std::shared_ptr<Executor> workers = nullptr) {
    SessionOptions options;
    options.threads = threads;
    options.kv = kv;
    options.max_context = context;
    options.workers = std::move(workers);
    auto made = Session::create(model_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  static std::vector<float> run_chunks(Session& session, std::span<const uint32_t> tokens, size_t chunk) {
    std::vector<float> out;
    for (size_t i = 0; i < tokens.size(); i += chunk) {
      const auto logits = session.forward(tokens.subspan(i, std::min(chunk, tokens.size() - i)), true);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      out.insert(out.end(), logits->begin(), logits->end());
    }
    return out;
  }

  test::TemporaryFolder folder_;
  std::shared_ptr<const Model> model_;
};

TEST_F(SessionTest, AgreesWithPlainArithmetic) {
  const auto tokens = some_tokens(150);
  const std::vector<double> want = TinyModel().reference(tokens);
  EXPECT_LT(relative_error(run_chunks(*session(), tokens, tokens.size()), want), kF32Error);
  EXPECT_LT(relative_error(run_chunks(*session(1, KvType::kF16), tokens, tokens.size()), want), kF16Error);
  EXPECT_LT(relative_error(run_chunks(*session(1, KvType::kQ8), tokens, tokens.size()), want), kQ8Error);
}

TEST_F(SessionTest, ResultsDependNeitherOnChunksNorOnThreads) {
  const auto tokens = some_tokens(140);
  for (const KvType kv : {KvType::kF32, KvType::kF16, KvType::kQ8}) {
    const std::vector<float> want = run_chunks(*session(1, kv), tokens, tokens.size());
    for (const unsigned threads : {1u, 2u, 5u})
      for (const size_t chunk : {1u, 7u, 16u, 100u}) {
        const std::vector<float> got = run_chunks(*session(threads, kv), tokens, chunk);
        ASSERT_EQ(got.size(), want.size());
        EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
            << threads << " threads, chunks of " << chunk;
      }
  }
}

TEST_F(SessionTest, SessionsTakeTurnsOnTheSameWorkers) {
  const auto tokens = some_tokens(60);
  const std::vector<float> want = run_chunks(*session(), tokens, tokens.size());
  auto one = session(3);
  const auto other = session(3, KvType::kF32, 0, one->workers());
  EXPECT_EQ(other->workers(), one->workers());
  EXPECT_EQ(other->threads(), one->threads());
  std::vector<float> ones, others;
  for (size_t i = 0; i < tokens.size(); i += 10)
    for (const auto& [session, out] : {std::pair(one.get(), &ones), std::pair(other.get(), &others)}) {
      const std::vector<float> rows =
          run_chunks(*session, std::span(tokens).subspan(i, 10), session == one.get() ? 7 : 4);
      out->insert(out->end(), rows.begin(), rows.end());
    }
  EXPECT_EQ(ones, want);
  EXPECT_EQ(others, want);
  one.reset();
  other->reset();
  EXPECT_EQ(run_chunks(*other, tokens, 60), want);
}

TEST_F(SessionTest, LastLogitsEqualThoseOfAllPositions) {
  const auto tokens = some_tokens(40);
  const std::vector<float> all = run_chunks(*session(), tokens, tokens.size());
  auto other = session(2);
  const auto last = other->forward(tokens, false);
  ASSERT_TRUE(last.ok());
  ASSERT_EQ(last->size(), TinyModel::kVocab);
  EXPECT_EQ(std::memcmp(last->data(), all.data() + 39 * TinyModel::kVocab, last->size_bytes()), 0);
}

TEST_F(SessionTest, RewindForgets) {
  const auto tokens = some_tokens(60);
  auto one = session(2, KvType::kF16);
  const std::vector<float> want = run_chunks(*one, tokens, 60);
  one->rewind(20);
  EXPECT_EQ(one->position(), 20u);
  std::vector<uint32_t> other(30, 3);
  ASSERT_TRUE(one->forward(other, false).ok());
  one->rewind(20);
  const std::vector<float> got = run_chunks(*one, std::span(tokens).subspan(20), 13);
  EXPECT_EQ(std::memcmp(got.data(), want.data() + 20 * TinyModel::kVocab, got.size() * sizeof(float)), 0);
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  auto one = session(1, KvType::kF32, 32);
  EXPECT_EQ(one->max_context(), 32u);
  const auto too_many = one->forward(some_tokens(33), false);
  ASSERT_FALSE(too_many.ok());
  EXPECT_THAT(too_many.status().message(), ::testing::AllOf(HasSubstr("33"), HasSubstr("32")));
  EXPECT_TRUE(one->forward(some_tokens(32), false).ok());
  EXPECT_FALSE(one->forward(some_tokens(1), false).ok());
  one->reset();
  const uint32_t foreign = TinyModel::kVocab;
  const auto bad = one->forward({&foreign, 1}, false);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.status().message(), HasSubstr("37"));
  EXPECT_FALSE(one->forward({}, false).ok());
  EXPECT_EQ(one->position(), 0u);
  SessionOptions options;
  options.max_context = TinyModel::kMaxContext + 1;
  EXPECT_FALSE(Session::create(model_, options).ok());
}

TEST_F(SessionTest, F16CacheThatOverflowsIsAnErrorThatNamesTheLayer) {
  load(TinyModel(1e6f));
  auto half = session(2, KvType::kF16);
  const auto result = half->forward(some_tokens(3), false);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), ::testing::AllOf(HasSubstr("layer 1"), HasSubstr("--kv f32")));
  EXPECT_EQ(half->position(), 0u);
  const auto wide = session()->forward(some_tokens(3), false);
  ASSERT_TRUE(wide.ok());
}

TEST_F(SessionTest, ProfileNamesEveryKernel) {
  SessionOptions options;
  options.profile = true;
  options.threads = 2;
  auto one = *Session::create(model_, options);
  ASSERT_TRUE(one->forward(some_tokens(9), false).ok());
  const std::vector<std::string> lines = describe(one->profile(), 10);
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("gemm_f32_f32_f32_r16_k40_1x16_bias_scalar 120x40")));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("attention ")));
}

TEST_F(SessionTest, ProfileAccountsForAllTimeOfSteps) {
  for (const unsigned threads : {1u, 3u}) {
    SessionOptions options;
    options.profile = true;
    options.threads = threads;
    auto one = *Session::create(model_, options);
    ASSERT_TRUE(one->forward(some_tokens(9), false).ok());
    one->reset_profile(1);
    ASSERT_TRUE(one->forward(some_tokens(2), false).ok());
    ASSERT_TRUE(one->forward(some_tokens(1), false).ok());
    const Profile profile = one->profile();
    EXPECT_EQ(profile.steps, 2u);
    EXPECT_EQ(profile.threads, threads);
    double busy = 0, seconds = 0;
    for (const Profile::Row& row : profile.rows) {
      EXPECT_EQ(row.calls % 2, 0u) << row.name;
      busy += row.busy_seconds;
      seconds += row.seconds;
    }
    EXPECT_NEAR(profile.work, busy / threads, 1e-6);
    EXPECT_LE(seconds, profile.step);
    for (const double part : {profile.work, profile.waiting, profile.alone, profile.setup})
      EXPECT_GE(part, 0);
    EXPECT_NEAR(profile.work + profile.waiting + profile.alone + profile.setup, profile.step, 1e-9);
    double traced = 0; // the first of the two steps
    for (const Profile::Event& event : profile.events) {
      ASSERT_LT(event.row, profile.rows.size());
      EXPECT_LT(event.thread, threads);
      traced += event.seconds;
    }
    EXPECT_GT(traced, 0);
    EXPECT_LT(traced, busy);
  }
}

TEST_F(SessionTest, ProfileCountsWhatMatricesAndCacheComeTo) {
  SessionOptions options;
  options.profile = true;
  auto one = *Session::create(model_, options);
  ASSERT_TRUE(one->forward(some_tokens(9), false).ok());
  one->reset_profile(0);
  ASSERT_TRUE(one->forward(some_tokens(2), false).ok());
  const Profile profile = one->profile();
  EXPECT_TRUE(profile.events.empty());
  bool found = false;
  for (const Profile::Row& row : profile.rows)
    if (row.name == "gemm_f32_f32_f32_r16_k40_1x16_bias_scalar" && row.rows == 120) {
      found = true;
      EXPECT_EQ(row.operations, 2.0 * 120 * 40 * 2 * static_cast<double>(row.calls));
      EXPECT_EQ(row.bytes, 120.0 * 40 * sizeof(float) * static_cast<double>(row.calls));
    }
  EXPECT_TRUE(found);
}

TEST_F(SessionTest, MoreThreadsThanProcessorsFinish) {
  const auto tokens = some_tokens(30);
  const std::vector<float> want = run_chunks(*session(), tokens, 30);
  const std::vector<float> got = run_chunks(*session(33), tokens, 1);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
}

TEST(VectorProgram, RunsAVectorThroughOneKernel) {
  constexpr uint64_t kRows = 35, kCols = 21;
  std::vector<float> weights(kRows * kCols), input(kCols);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = std::cos(static_cast<float>(i));
  test::ArtifactBuilder builder(4);
  const uint32_t x = builder.slot(kCols), y = builder.slot(kRows);
  artifact::MatmulOpT op;
  op.parts.push_back(
      std::make_unique<artifact::MatmulPartT>(builder.matmul(builder.matrix("w", kRows, kCols, weights), x, y)));
  builder.stage(std::move(op));
  builder.program.logits = y;
  builder.manifest.vocab = kRows;
  builder.manifest.max_context = 1;
  test::TemporaryFolder folder;
  ASSERT_TRUE(builder.write(folder.file("gemv.cqa")).ok());
  auto model = Model::load(folder.file("gemv.cqa"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = *Session::create(*model, {});
  const auto result = session->run_vector(input);
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (size_t r = 0; r < kRows; ++r) {
    double want = 0;
    for (size_t c = 0; c < kCols; ++c)
      want += static_cast<double>(weights[r * kCols + c]) * input[c];
    EXPECT_NEAR((*result)[r], want, 1e-5);
  }
  EXPECT_FALSE(session->run_vector(std::span(input).first(3)).ok());
  const uint32_t token = 0;
  EXPECT_FALSE(session->forward({&token, 1}, false).ok());
}

TEST(VariableSize, WeightsThatContradictThemselvesAreRefusedAtLoad) {
  constexpr uint64_t kRows = 8, kCols = 32, kLeast = 64 + 4; // an overlay's count, behind the groups
  struct Case {
    uint64_t bytes;
    uint8_t count; ///< of outliers, as the tensor says
    const char* message;
  };
  for (const Case& c : {Case{kLeast - 1, 0, "needs at least 68"}, Case{kLeast, 1, "weight 'w': states an outlier"},
                        Case{kLeast + 6, 0, "weight 'w': states an outlier"}}) {
    test::ArtifactBuilder builder(1);
    const uint32_t x = builder.slot(kCols), y = builder.slot(kRows);
    artifact::MatmulOpT op;
    op.parts.push_back(std::make_unique<artifact::MatmulPartT>(
        builder.matmul(builder.matrix("w", kRows, kCols, std::vector<float>(kRows * kCols)), x, y)));
    builder.stage(std::move(op));
    builder.program.logits = y;
    builder.manifest.vocab = kRows;
    builder.manifest.max_context = 1;
    compiler::ArtifactContents contents = builder.contents();
    artifact::WeightT& weight = *contents.manifest.weights[0];
    weight.codec = static_cast<uint16_t>(cortiq::formats::CodecId::kQ1S);
    weight.bytes = c.bytes;
    contents.weights = [&](size_t, std::span<uint8_t> out) {
      std::fill(out.begin(), out.end(), uint8_t{0});
      if (out.size() >= kLeast)
        out[kLeast - 4] = c.count;
      return Status();
    };
    test::TemporaryFolder folder;
    ASSERT_TRUE(compiler::writeArtifact(folder.file("q1s.cqa"), std::move(contents), {}).ok());
    const auto model = Model::load(folder.file("q1s.cqa"));
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(model.status().message(), HasSubstr(c.message));
  }
}

TEST_F(SessionTest, EmbedsAsTheHeadReads) {
  const auto tokens = some_tokens(40); // three batches
  const std::vector<double> rows = TinyModel().hidden_reference(tokens);
  auto session = this->session(2);
  ASSERT_TRUE(session->forward(std::span(tokens).first(5), false).ok());
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    const auto vector = session->embed(tokens, pooling);
    ASSERT_TRUE(vector.ok()) << vector.status().message();
    ASSERT_EQ(vector->size(), TinyModel::kHidden);
    for (size_t i = 0; i < TinyModel::kHidden; ++i) {
      double want = rows[(tokens.size() - 1) * TinyModel::kHidden + i];
      if (pooling == Pooling::kMean) {
        want = 0;
        for (size_t t = 0; t < tokens.size(); ++t)
          want += rows[t * TinyModel::kHidden + i] / static_cast<double>(tokens.size());
      }
      EXPECT_NEAR((*vector)[i], want, kF32Error * 10) << i;
    }
    EXPECT_EQ(session->position(), 0u);
  }
  const auto logits = session->forward(tokens, false);
  ASSERT_TRUE(logits.ok());
  const std::vector<double> want = TinyModel().reference(tokens);
  EXPECT_NEAR((*logits)[3], want[(tokens.size() - 1) * TinyModel::kVocab + 3], kF32Error * TinyModel::kLogitCap);
  EXPECT_FALSE(session->embed({}, Pooling::kMean).ok());
  EXPECT_FALSE(session->embed(some_tokens(TinyModel::kMaxContext + 1), Pooling::kMean).ok());
}

} // namespace
} // namespace cortiq::runtime
