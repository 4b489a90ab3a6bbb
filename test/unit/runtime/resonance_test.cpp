// Scores by resonance against the formula in plain doubles, on random shapes; shells; and what does not fit.

#include <cmath>
#include <deque>
#include <limits>
#include <random>

#include "test/unit/runtime/op_runner.h"

namespace cortiq::runtime {
namespace {

struct Shape {
  uint64_t width, experts, rank, shells;
};

class ResonanceOps : public ::testing::Test {
protected:
  /// A verbatim f32 vector in the weight table.
  uint32_t weight(OpRunner& runner, uint64_t count, float center, float spread) {
    std::normal_distribution<float> normal(center, spread);
    values_.emplace_back(count);
    for (float& value : values_.back())
      value = normal(random_);
    artifact::WeightT row;
    row.name = "w";
    builders_.emplace_back();
    builders_.back().Finish(artifact::Weight::Pack(builders_.back(), &row));
    WeightRef ref;
    ref.entry = flatbuffers::GetRoot<artifact::Weight>(builders_.back().GetBufferPointer());
    ref.codec = &formats::codec_info(formats::CodecId::kF32);
    ref.layout = formats::LayoutId::kVerbatim;
    ref.rows = 1;
    ref.cols = count;
    ref.bytes = {reinterpret_cast<const uint8_t*>(values_.back().data()), count * sizeof(float)};
    runner.resolver.weights.push_back(ref);
    return static_cast<uint32_t>(runner.resolver.weights.size() - 1);
  }

  const std::vector<float>& of(uint32_t index) const { return values_[index]; }

  std::mt19937 random_{11};
  std::deque<std::vector<float>> values_; // stay where they are
  std::deque<flatbuffers::FlatBufferBuilder> builders_;
};

class Resonance : public ResonanceOps, public ::testing::WithParamInterface<Shape> {};

TEST_P(Resonance, IsTheBiasLessTheDistanceFromWhatWasLearnt) {
  const auto [width, experts, rank, shells] = GetParam();
  constexpr uint64_t kTokens = 5;
  OpRunner runner(kTokens);
  artifact::ResonanceOpT op;
  op.input = runner.slot(width);
  op.out = runner.slot(experts);
  op.rank = static_cast<uint32_t>(rank);
  for (uint64_t e = 0; e < experts; ++e) {
    op.means.push_back(weight(runner, width, 0, 1));
    if (rank != 0)
      op.bases.push_back(weight(runner, rank * width, 0, 0.05f));
    op.biases.push_back(weight(runner, 1, 0, 3));
    if (e >= experts - shells)
      op.shells.push_back(weight(runner, 1, 2 * static_cast<float>(width), static_cast<float>(width) / 4));
  }
  const artifact::ResonanceOpT row = op;
  runner.stage(std::move(op));
  ASSERT_TRUE(runner.resolve().ok());
  std::normal_distribution<float> normal;
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t i = 0; i < width; ++i)
      runner.f32(row.input, t)[i] = normal(random_);
  runner.run(1, kTokens - 1);
  uint64_t outside = 0;
  for (uint64_t t = 1; t < kTokens; ++t)
    for (uint64_t e = 0; e < experts; ++e) {
      const float* x = runner.f32(row.input, t);
      double error = 0;
      for (uint64_t i = 0; i < width; ++i)
        error += std::pow(x[i] - static_cast<double>(of(row.means[e])[i]), 2);
      for (uint64_t r = 0; r < rank; ++r) {
        double along = 0;
        for (uint64_t i = 0; i < width; ++i)
          along += of(row.bases[e])[r * width + i] * (x[i] - static_cast<double>(of(row.means[e])[i]));
        error -= along * along;
      }
      const float got = runner.f32(row.out, t)[e];
      if (e >= experts - shells && error > of(row.shells[e - (experts - shells)])[0]) {
        EXPECT_EQ(got, -std::numeric_limits<float>::infinity());
        ++outside;
      } else {
        const double want = of(row.biases[e])[0] - error;
        EXPECT_NEAR(got, want, 1e-6 * (1 + std::abs(want))) << "token " << t << ", expert " << e; // rounding to f32
      }
    }
  EXPECT_TRUE(shells < 4 || outside != 0) << "no shell was tested";
}

INSTANTIATE_TEST_SUITE_P(Shapes, Resonance,
                         ::testing::Values(Shape{1, 1, 0, 0}, Shape{7, 3, 1, 0}, Shape{33, 5, 0, 2}, Shape{64, 9, 4, 9},
                                           Shape{130, 17, 8, 5}));

TEST_F(ResonanceOps, RefuseWhatDoesNotFit) {
  struct Row {
    const char* what;
    void (*change)(artifact::ResonanceOpT& op);
  };
  const Row rows[] = {
      {"no experts", [](artifact::ResonanceOpT& op) { op.means.clear(); }},
      {"a bias too few", [](artifact::ResonanceOpT& op) { op.biases.pop_back(); }},
      {"bases without a rank", [](artifact::ResonanceOpT& op) { op.rank = 0; }},
      {"a rank beyond the width", [](artifact::ResonanceOpT& op) { op.rank = 9; }},
      {"more shells than experts", [](artifact::ResonanceOpT& op) { op.shells.assign(3, op.biases[0]); }},
      {"a weight that is not there", [](artifact::ResonanceOpT& op) { op.means[1] = 1000; }},
      {"a mean of another length", [](artifact::ResonanceOpT& op) { op.means[1] = op.biases[0]; }},
      {"an output of another length", [](artifact::ResonanceOpT& op) { op.out = op.input; }},
  };
  for (const Row& row : rows) {
    OpRunner runner(1);
    artifact::ResonanceOpT op;
    op.input = runner.slot(8);
    op.out = runner.slot(2);
    op.rank = 1;
    for (int e = 0; e < 2; ++e) {
      op.means.push_back(weight(runner, 8, 0, 1));
      op.bases.push_back(weight(runner, 8, 0, 1));
      op.biases.push_back(weight(runner, 1, 0, 1));
    }
    row.change(op);
    runner.stage(std::move(op));
    EXPECT_FALSE(runner.resolve().ok()) << row.what;
  }
}

} // namespace
} // namespace cortiq::runtime
