// The transform in front of weights against the matrix that it stands for, and its inverse.

#include <bit>
#include <cmath>
#include <random>

#include "formats/codec/codec.h"
#include "test/unit/runtime/op_runner.h"

namespace cortiq::runtime {
namespace {

struct Shape {
  uint64_t width, block;
};

/// `half` leaves f32 noise beside a tie on either side: one step of f16.
constexpr double kHalfStep = 1.0 / 1024, kF32Noise = 2e-6;

class Hadamard : public ::testing::TestWithParam<Shape> {
protected:
  void SetUp() override {
    const auto [width, block] = GetParam();
    std::mt19937 random(static_cast<uint32_t>(width * 31 + block));
    std::normal_distribution<float> normal;
    for (uint64_t i = 0; i < width; ++i) {
      x_.push_back(normal(random));
      negative_.push_back(random() % 2);
    }
  }

  double sign(uint64_t i) const { return negative_[i] ? -1 : 1; }
  static double rounded(double v) {
    return formats::f16_to_f32(static_cast<uint16_t>(std::bit_cast<uint16_t>(static_cast<_Float16>(v))));
  }

  /// The definition: entry (i, j) of a block's matrix is -1 where i and j have an odd number of common bits.
  std::vector<double> expected(bool inverse, bool half) const {
    const auto [width, block] = GetParam();
    std::vector<double> out(width);
    for (uint64_t i = 0; i < width; ++i) {
      const uint64_t start = i / block * block;
      double sum = 0;
      for (uint64_t j = 0; j < block; ++j) {
        double v = x_[start + j];
        v = !inverse ? v * sign(start + j) : half ? rounded(v) : v;
        sum += std::popcount((i - start) & j) % 2 == 0 ? v : -v;
      }
      sum /= std::sqrt(static_cast<double>(block));
      out[i] = inverse ? sum * sign(i) : sum;
      if (half)
        out[i] = rounded(out[i]);
    }
    return out;
  }

  artifact::HadamardOpT row(uint32_t input, uint32_t out, bool inverse, bool half) const {
    artifact::HadamardOpT op;
    op.input = input;
    op.out = out;
    op.block = GetParam().block;
    op.inverse = inverse;
    op.half = half;
    op.negative.assign((negative_.size() + 7) / 8, 0);
    for (size_t i = 0; i < negative_.size(); ++i)
      op.negative[i / 8] |= static_cast<uint8_t>(negative_[i] << i % 8);
    return op;
  }

  std::vector<float> x_;
  std::vector<uint8_t> negative_;
};

TEST_P(Hadamard, IsTheSignedMatrix) {
  const uint64_t width = GetParam().width;
  for (const bool inverse : {false, true})
    for (const bool half : {false, true}) {
      OpRunner runner(3);
      const uint32_t in = runner.slot(width), out = runner.slot(width);
      runner.stage(row(in, out, inverse, half));
      ASSERT_TRUE(runner.resolve().ok());
      std::copy(x_.begin(), x_.end(), runner.f32(in, 1));
      runner.run(1, 1);
      const std::vector<double> want = expected(inverse, half);
      uint64_t equal = 0;
      for (uint64_t i = 0; i < width; ++i) {
        const float got = runner.f32(out, 1)[i];
        EXPECT_NEAR(got, want[i], (half ? kHalfStep * std::abs(want[i]) : 0) + kF32Noise) << i;
        EXPECT_TRUE(!half || got == static_cast<float>(static_cast<_Float16>(got))) << i;
        equal += got == static_cast<float>(want[i]);
      }
      if (half) {
        EXPECT_GE(equal, width - width / 32);
      }
    }
}

TEST_P(Hadamard, TheInverseUndoesIt) {
  const uint64_t width = GetParam().width;
  OpRunner runner(1);
  const uint32_t in = runner.slot(width), there = runner.slot(width), back = runner.slot(width);
  runner.stage(row(in, there, false, false));
  runner.stage(row(there, back, true, false));
  ASSERT_TRUE(runner.resolve().ok());
  std::copy(x_.begin(), x_.end(), runner.f32(in, 0));
  runner.run(0, 1);
  for (uint64_t i = 0; i < width; ++i)
    EXPECT_NEAR(runner.f32(back, 0)[i], x_[i], kF32Noise) << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Hadamard,
                         ::testing::Values(Shape{1, 1}, Shape{6, 2}, Shape{36, 4}, Shape{64, 64}, Shape{384, 128},
                                           Shape{2048, 1024}));

TEST(HadamardRow, RefusesBlocksAndSignsThatDoNotFit) {
  for (const uint64_t block : {0u, 3u, 8u}) {
    OpRunner runner(1);
    artifact::HadamardOpT op;
    op.input = runner.slot(12);
    op.out = runner.slot(12);
    op.block = block;
    op.negative.assign(2, 0);
    runner.stage(std::move(op));
    EXPECT_NE(runner.resolve().message().find("do not divide"), std::string::npos) << block;
  }
  OpRunner runner(1);
  artifact::HadamardOpT op;
  op.input = runner.slot(12);
  op.out = runner.slot(12);
  op.block = 4;
  op.negative.assign(1, 0);
  runner.stage(std::move(op));
  EXPECT_NE(runner.resolve().message().find("1 bytes of signs"), std::string::npos);
}

} // namespace
} // namespace cortiq::runtime
