// The gate operation against its formula: one gate a token, a group, a feature; odd sizes; in place; quantized.

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "test/unit/runtime/op_runner.h"

namespace cortiq::runtime {
namespace {

// exp and log1p in f32 vectors lose a few units in the last place.
constexpr float kRelative = 2e-6f;

double function_of(artifact::GateFunction function, double g) {
  return function == artifact::GateFunction::Sigmoid ? 1 / (1 + std::exp(-g))
                                                     : std::fmax(g, 0) + std::log1p(std::exp(-std::fabs(g)));
}

void expect_gated(uint64_t width, uint64_t gates, artifact::GateFunction function, bool in_place) {
  OpRunner runner(3);
  artifact::GateOpT op;
  op.x = runner.slot(width);
  op.g = runner.slot(gates);
  op.out = in_place ? op.x : runner.slot(width);
  op.act_out = runner.slot(width, artifact::BufferKind::Q8Act);
  op.function = function;
  runner.stage(op);
  ASSERT_TRUE(runner.resolve().ok());
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> want;
  for (uint64_t t = 0; t < 3; ++t) {
    for (uint64_t j = 0; j < gates; ++j)
      runner.f32(op.g, t)[j] = normal(random);
    for (uint64_t i = 0; i < width; ++i) {
      const float x = runner.f32(op.x, t)[i] = normal(random);
      want.push_back(static_cast<float>(x * function_of(function, runner.f32(op.g, t)[i / (width / gates)])));
    }
  }
  runner.run(1, 2);
  for (uint64_t t = 1; t < 3; ++t) {
    const auto* codes = reinterpret_cast<const int8_t*>(runner.bytes(op.act_out, t));
    const auto* scales =
        reinterpret_cast<const float*>(runner.bytes(op.act_out, t) + formats::q8_act_layout(width).scale);
    for (uint64_t i = 0; i < width; ++i) {
      const float value = want[t * width + i];
      EXPECT_NEAR(runner.f32(op.out, t)[i], value, kRelative * std::fabs(value)) << width << "/" << gates << " " << i;
      EXPECT_NEAR(static_cast<float>(codes[i]) * scales[i / 32], value, 0.51f * scales[i / 32]);
    }
    for (uint64_t i = width; i % 16 != 0; ++i)
      EXPECT_EQ(runner.f32(op.out, t)[i], 0);
  }
}

TEST(Gate, FollowsItsFormula) {
  for (const auto function : {artifact::GateFunction::Sigmoid, artifact::GateFunction::Softplus})
    for (const bool in_place : {false, true})
      for (const auto [width, gates] :
           {std::pair<uint64_t, uint64_t>{64, 1}, {64, 4}, {64, 64}, {1, 1}, {35, 7}, {35, 35}, {40, 1}, {96, 32}})
        expect_gated(width, gates, function, in_place);
}

TEST(Gate, RefusesGatesThatDoNotDivide) {
  OpRunner runner(1);
  artifact::GateOpT op;
  op.x = runner.slot(64);
  op.g = runner.slot(5);
  op.out = op.x;
  runner.stage(op);
  EXPECT_FALSE(runner.resolve().ok());
}

} // namespace
} // namespace cortiq::runtime
