// Products that do their neighbours' work: gated pairs, norms shared by producer and consumer, results in 8 bits.

#include <cmath>

#include "formats/artifact/shader_abi.h"
#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // codecs, and the numbers of shader_abi.h

constexpr double kBound = 1e-5;

struct Matrix {
  uint32_t rows, cols;
  std::vector<uint8_t> packed;
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y;
    std::vector<float> w(cols);
    for (uint32_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(decode_packed_row(*find_codec("q4_0"), LayoutId::kPlanes, packed, rows, cols, r, w.data()).ok());
      double sum = 0;
      for (uint32_t i = 0; i < cols; ++i)
        sum += w[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
};

Matrix matrix(uint32_t rows, uint32_t cols, uint32_t seed) {
  Matrix m = {rows, cols, std::vector<uint8_t>(*packed_bytes(*find_codec("q4_0"), LayoutId::kPlanes, rows, cols))};
  EXPECT_TRUE(fill_random(*find_codec("q4_0"), LayoutId::kPlanes, rows, cols, seed, m.packed).ok());
  m.packed.resize((m.packed.size() + 15) / 16 * 16);
  return m;
}

class Fused : public ShaderTest {};

/// h = residual + W x, then gated(W1 norm(h), W2 norm(h)), for two tokens, with and without 8-bit steps between.
TEST_F(Fused, ANormAndAGatedUnitTakeTwoDispatches) {
  constexpr uint32_t kIn = 96, kHidden = 160, kInner = 70, kCount = 2;
  const Matrix w = matrix(kHidden, kIn, 1), w1 = matrix(kInner, kHidden, 2), w2 = matrix(kInner, kHidden, 3);
  const std::vector<float> norm = random_floats(kHidden, 4), bias1 = random_floats(kInner, 5),
                           bias2 = random_floats(kInner, 6);
  std::vector<std::vector<float>> xs, residuals;
  Dispatch d;
  for (uint32_t t = 0; t < kCount; ++t) {
    xs.push_back(random_floats(kIn, 10 + t));
    append(d.buffers[kArena], in_lane_order(xs[t]));
  }
  const uint32_t residual_at = kCount * 1024;
  for (uint32_t t = 0; t < kCount; ++t) {
    residuals.push_back(random_floats(kHidden, 20 + t));
    append(d.buffers[kArena], residuals[t]);
  }
  const uint32_t h_at = residual_at + kCount * kHidden, normed_at = h_at + kCount * kHidden,
                 squares_at = normed_at + kCount * 1024, out_at = squares_at + 64;
  d.buffers[kArena].resize(out_at + kCount * 1024, 0x7fc00000u);
  append(d.buffers[kVectors], norm);
  append(d.buffers[kVectors], bias1);
  append(d.buffers[kVectors], bias2);
  d.buffers[kStep] = {kCount, 0, 0, 0};
  // 32 rows a workgroup: 8 teams of 32 lanes with 4 rows each.
  const std::vector<std::pair<uint32_t, uint32_t>> tile = {
      {kSpecLocal, 256}, {kSpecLanes, 32}, {kSpecTokens, 2}, {kSpecTeamRows, 4}};
  auto first = tile, second = tile;
  const uint32_t groups = kHidden / 32;
  for (const bool eight_bits : {false, true}) {
    if (eight_bits && !device->integer_dot())
      continue;
    SCOPED_TRACE(eight_bits);
    first = second = tile;
    d.buffers[kWeights] = words_of(w.packed);
    d.push = {0, 0, h_at, 0, residual_at, 1024, kHidden, kHidden, normed_at, eight_bits ? q8_words(kHidden) : 1024,
              0, 0, 0,    0, squares_at,  0};
    d.grid = {groups, 1, 1};
    first.insert(
        first.end(),
        {{kSpecRows, kHidden}, {kSpecCols, kIn}, {kSpecResidual, 1}, {kSpecNormOut, 1}, {kSpecQuantOut, eight_bits}});
    run("matmul_q4_0", first, d);
    if (HasFatalFailure())
      return;
    std::vector<uint8_t> both = w1.packed;
    both.insert(both.end(), w2.packed.begin(), w2.packed.end());
    d.buffers[kWeights] = words_of(both);
    d.push = {0,
              normed_at,
              out_at,
              kHidden,
              0,
              eight_bits ? q8_words(kHidden) : 1024,
              1024,
              0,
              0,
              0,
              squares_at,
              0,
              kHidden + kInner,
              static_cast<uint32_t>(w1.packed.size() / 16),
              0,
              0};
    d.grid = {(kInner + 31) / 32, 1, 1};
    second.insert(second.end(), {{kSpecRows, kInner},
                                 {kSpecCols, kHidden},
                                 {kSpecPair, 1},
                                 {kSpecBias, 1},
                                 {kSpecNormIn, groups},
                                 {kSpecEps, std::bit_cast<uint32_t>(1e-5f)},
                                 {kSpecOutOrder, 1}});
    run(eight_bits ? "matmul_i8_q4_0" : "matmul_q4_0", second, d);
    if (HasFatalFailure())
      return;
    for (uint32_t t = 0; t < kCount; ++t) {
      std::vector<double> h = w.times({xs[t].begin(), xs[t].end()});
      double squares = 0;
      for (uint32_t i = 0; i < kHidden; ++i) {
        h[i] += residuals[t][i];
        squares += h[i] * h[i];
      }
      const std::span<const uint32_t> arena = d.buffers[kArena];
      expect_near(floats(arena.subspan(h_at + t * kHidden, kHidden)), h, kBound);
      std::vector<double> normed;
      for (uint32_t i = 0; i < kHidden; ++i)
        normed.push_back(h[i] * norm[i]);
      if (eight_bits) { // what the second product reads: the codes on the device
        const std::span<const uint32_t> row = arena.subspan(normed_at + t * q8_words(kHidden), q8_words(kHidden));
        for (uint32_t i = 0; i < kHidden; ++i) {
          const uint32_t g = i / 32, word = row[(i % 32 / 16 * 32 + g) * 4 + i % 16 / 4];
          const double value =
              static_cast<int8_t>(word >> (8 * (i % 4))) * double{std::bit_cast<float>(row[32 * 8 + g])};
          ASSERT_LE(std::fabs(value - normed[i]), 0.51 * std::bit_cast<float>(row[32 * 8 + g])) << i;
          normed[i] = value;
        }
      }
      for (double& n : normed)
        n /= std::sqrt(squares / kHidden + 1e-5);
      const std::vector<double> gate = w1.times(normed), up = w2.times(normed);
      std::vector<double> want;
      for (uint32_t i = 0; i < kInner; ++i) {
        const double g = gate[i] + bias1[i];
        want.push_back(g / (1 + std::exp(-g)) * (up[i] + bias2[i]));
      }
      std::vector<float> got;
      for (uint32_t i = 0; i < kInner; ++i)
        got.push_back(std::bit_cast<float>(arena[out_at + t * 1024 + lane_place(i)]));
      expect_near(got, want, kBound);
    }
  }
}

} // namespace
} // namespace cortiq::codegen
