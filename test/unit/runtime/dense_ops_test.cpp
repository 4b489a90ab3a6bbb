// LayerNorm, activations with numbers, and the operations on heads, against their formulas.

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "test/unit/runtime/op_runner.h"

namespace cortiq::runtime {
namespace {

// exp and tanh in f32 vectors lose a few units in the last place.
constexpr float kRelative = 4e-6f;

constexpr uint64_t kTokens = 3;

void fill(OpRunner& runner, uint32_t slot, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t i = 0; i < runner.resolver.slots[slot].elements; ++i)
      runner.f32(slot, t)[i] = normal(random);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(DenseOps, LayerNorm) {
  for (const uint64_t width : {1, 5, 16, 35, 96}) {
    OpRunner runner(kTokens);
    artifact::NormOpT op;
    op.input = runner.slot(width);
    op.out = runner.slot(width);
    op.eps = 0.5f;
    op.centered = true;
    runner.stage(op);
    ASSERT_TRUE(runner.resolve().ok());
    fill(runner, op.input, static_cast<unsigned>(width));
    runner.run(0, kTokens);
    for (uint64_t t = 0; t < kTokens; ++t) {
      const float* x = runner.f32(op.input, t);
      double mean = 0, variance = 0;
      for (uint64_t i = 0; i < width; ++i)
        mean += x[i] / static_cast<double>(width);
      for (uint64_t i = 0; i < width; ++i)
        variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
      for (uint64_t i = 0; i < width; ++i)
        EXPECT_NEAR(runner.f32(op.out, t)[i], (x[i] - mean) / std::sqrt(variance + 0.5), 1e-5) << width << " " << i;
    }
  }
}

TEST(DenseOps, ActivationsWithNumbers) {
  for (const auto activation : {artifact::Activation::Situ, artifact::Activation::SwigluOai})
    for (const float limit : {0.0f, 2.0f}) {
      if (activation == artifact::Activation::SwigluOai && limit == 0)
        continue;
      OpRunner runner(kTokens);
      artifact::GluOpT op;
      op.gate = runner.slot(35);
      op.up = runner.slot(35);
      op.out = runner.slot(35);
      op.activation = activation;
      op.alpha = 1.5f;
      op.limit = limit;
      runner.stage(op);
      ASSERT_TRUE(runner.resolve().ok());
      fill(runner, op.gate, 1);
      fill(runner, op.up, 2);
      runner.run(0, kTokens);
      for (uint64_t t = 0; t < kTokens; ++t)
        for (uint64_t i = 0; i < 35; ++i) {
          double g = runner.f32(op.gate, t)[i], u = runner.f32(op.up, t)[i], want;
          if (activation == artifact::Activation::SwigluOai) {
            g = std::fmin(g, limit);
            u = std::fmin(std::fmax(u, -limit), limit);
            want = g * sigmoid(1.5 * g) * (u + 1);
          } else {
            want = 1.5 * std::tanh(g / 1.5) * sigmoid(g) * (limit > 0 ? limit * std::tanh(u / limit) : u);
          }
          EXPECT_NEAR(runner.f32(op.out, t)[i], want, kRelative * std::fmax(1, std::fabs(want)));
        }
    }
}

// Far from zero an activation is its argument, or nothing: the exponential inside must not leave its range.
TEST(DenseOps, ActivationsFarFromZero) {
  const std::vector<float> gates = {-1e30f, -5000, -1000, -300, -178, -177, -176, -100,
                                    -60,    -14,   14,    100,  178,  1000, 1e30f};
  for (const auto activation : {artifact::Activation::Silu, artifact::Activation::GeluTanh}) {
    OpRunner runner(1);
    artifact::GluOpT op;
    op.gate = runner.slot(gates.size());
    op.out = runner.slot(gates.size());
    op.activation = activation;
    runner.stage(op);
    ASSERT_TRUE(runner.resolve().ok());
    std::copy(gates.begin(), gates.end(), runner.f32(op.gate, 0));
    runner.run(0, 1);
    for (size_t i = 0; i < gates.size(); ++i)
      EXPECT_NEAR(runner.f32(op.out, 0)[i], gates[i] > 0 ? gates[i] : 0, 2e-5 * std::fmax(1, gates[i]))
          << static_cast<int>(activation) << " of " << gates[i];
  }
}

TEST(DenseOps, ActivationsThatNeedNumbersAreRefusedWithout) {
  OpRunner runner(1);
  artifact::GluOpT op;
  op.gate = runner.slot(16);
  op.up = op.gate;
  op.out = op.gate;
  op.activation = artifact::Activation::SwigluOai;
  runner.stage(op);
  EXPECT_FALSE(runner.resolve().ok());
}

TEST(DenseOps, ConcatHeads) {
  for (const bool shared : {false, true}) {
    OpRunner runner(kTokens);
    artifact::ConcatHeadsOpT op;
    op.a = runner.slot(shared ? 3 : 12);
    op.b = runner.slot(20);
    op.out = runner.slot(32);
    op.heads = 4;
    runner.stage(op);
    ASSERT_TRUE(runner.resolve().ok());
    fill(runner, op.a, 1);
    fill(runner, op.b, 2);
    runner.run(1, 2);
    for (uint64_t t = 1; t < kTokens; ++t)
      for (uint64_t h = 0; h < 4; ++h)
        for (uint64_t i = 0; i < 8; ++i)
          EXPECT_EQ(runner.f32(op.out, t)[h * 8 + i],
                    i < 3 ? runner.f32(op.a, t)[(shared ? 0 : h * 3) + i] : runner.f32(op.b, t)[h * 5 + i - 3]);
  }
}

TEST(DenseOps, ConcatHeadsRefusesWhatDoesNotFit) {
  OpRunner runner(1);
  artifact::ConcatHeadsOpT op;
  op.a = runner.slot(12);
  op.b = runner.slot(20);
  op.out = runner.slot(33);
  op.heads = 4;
  runner.stage(op);
  EXPECT_FALSE(runner.resolve().ok());
}

TEST(DenseOps, ClusterLogits) {
  OpRunner runner(kTokens);
  artifact::ClusterLogitsOpT op;
  op.logits = runner.slot(24);
  op.clusters = runner.slot(4);
  runner.stage(op);
  ASSERT_TRUE(runner.resolve().ok());
  fill(runner, op.logits, 1);
  fill(runner, op.clusters, 2);
  std::vector<double> want;
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t v = 0; v < 24; ++v) {
      double clusters = 0, block = 0;
      for (uint64_t c = 0; c < 4; ++c)
        clusters += std::exp(runner.f32(op.clusters, t)[c]);
      for (uint64_t i = v / 6 * 6; i < v / 6 * 6 + 6; ++i)
        block += std::exp(runner.f32(op.logits, t)[i]);
      want.push_back(runner.f32(op.clusters, t)[v / 6] - std::log(clusters) + runner.f32(op.logits, t)[v] -
                     std::log(block));
    }
  runner.run(0, kTokens);
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t v = 0; v < 24; ++v)
      EXPECT_NEAR(runner.f32(op.logits, t)[v], want[t * 24 + v], 1e-5);
}

} // namespace
} // namespace cortiq::runtime
