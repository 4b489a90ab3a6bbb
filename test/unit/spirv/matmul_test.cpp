// Matrix products on the device against the reference decode.

#include <cmath>
#include <random>

#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

namespace cortiq::codegen {
namespace {

/// Bound of a product's error, in parts of the sum of |w x|.
constexpr double kExactBound = 4e-6;

struct Case {
  const char* codec;
  uint32_t rows, cols;
  bool bit_equal = false;
};

struct Shape {
  uint32_t local = 64, lanes = 32, tokens = 1, team_rows = 1;
};

class Matmul : public ShaderTest {
protected:
  /// y of every token, in natural order.
  std::vector<std::vector<float>> product(const Case& c, const Shape& shape, const Words& weights,
                                          const std::vector<std::vector<float>>& xs, uint32_t chunks) {
    const uint32_t x_stride = lane_floats(c.cols);
    const uint32_t y_at = x_stride * static_cast<uint32_t>(xs.size());
    Dispatch d;
    d.buffers[kWeights] = weights;
    Words& arena = d.buffers[kArena];
    for (const std::vector<float>& x : xs)
      append(arena, in_lane_order(x));
    arena.resize(y_at + xs.size() * c.rows, 0x7fc00001u);
    d.buffers[kStep] = {static_cast<uint32_t>(xs.size()), 0, 0, 0};
    d.push = {0, 0, y_at, 0, 0, x_stride, c.rows};
    const uint32_t rows_a_group = shape.local / shape.lanes * shape.team_rows;
    d.grid = {(c.rows + rows_a_group - 1) / rows_a_group, 1, chunks};
    run(std::string("matmul_") + c.codec,
        {{0, shape.local}, {1, c.rows}, {2, c.cols}, {3, shape.lanes}, {4, shape.tokens}, {5, shape.team_rows}}, d);
    std::vector<std::vector<float>> ys;
    for (size_t t = 0; t < xs.size(); ++t)
      ys.push_back(floats(std::span(d.buffers[kArena]).subspan(y_at + t * c.rows, c.rows)));
    return ys;
  }

  void check(const Case& c) {
    SCOPED_TRACE(std::string(c.codec) + " " + std::to_string(c.rows) + " x " + std::to_string(c.cols));
    const formats::Codec& codec = *formats::find_codec(c.codec);
    std::vector<uint8_t> packed(*formats::packed_bytes(codec, formats::LayoutId::kPlanes, c.rows, c.cols));
    ASSERT_TRUE(formats::fill_random(codec, formats::LayoutId::kPlanes, c.rows, c.cols, 3, packed).ok());
    const Words weights = words_of(packed);
    constexpr uint32_t kCount = 5;
    std::vector<std::vector<float>> xs;
    for (uint32_t t = 0; t < kCount; ++t)
      xs.push_back(random_floats(c.cols, 100 + t));
    const auto one = product(c, {}, weights, {xs[0]}, 1);
    if (HasFatalFailure())
      return;
    std::vector<float> w(c.cols);
    for (uint32_t r = 0; r < c.rows; ++r) {
      ASSERT_TRUE(
          formats::decode_packed_row(codec, formats::LayoutId::kPlanes, packed, c.rows, c.cols, r, w.data()).ok());
      double sum = 0, magnitude = 0;
      for (uint32_t i = 0; i < c.cols; ++i) {
        sum += static_cast<double>(w[i]) * xs[0][i];
        magnitude += std::fabs(static_cast<double>(w[i]) * xs[0][i]);
      }
      ASSERT_LE(std::fabs(one[0][r] - sum), kExactBound * magnitude) << "row " << r;
    }
    if (!c.bit_equal)
      return;
    // Chunks of tokens, and rows side by side, give the same bits.
    const auto many = product(c, {.tokens = 4}, weights, xs, 2);
    const auto pairs = product(c, {.local = 128, .team_rows = 2}, weights, {xs[0]}, 1);
    if (HasFatalFailure())
      return;
    EXPECT_EQ(many[0], one[0]);
    EXPECT_EQ(pairs[0], one[0]);
    EXPECT_EQ(many[4], product(c, {}, weights, {xs[4]}, 1)[0]);
  }
};

// Decoders are held to the reference one by one (decode_test.cpp); here it is one codec of each kind of decoder.
TEST_F(Matmul, IsExact) {
  for (const Case& c : {Case{"f16", 7, 96}, Case{"q4_0", 9, 1088, true}, Case{"q8_2f", 5, 64}, Case{"q6_k", 5, 512},
                        Case{"iq2_s", 3, 256}, Case{"mxfp4", 5, 320}})
    check(c);
}

TEST_F(Matmul, RowsThatAreNoWholeGroups) {
  check({"f32", 3, 37, true});
}

// A kernel of 64 lanes a row, eight tokens a chunk; workgroups that go on in the second dimension.
TEST_F(Matmul, ManyRowsOfFourBitFloats) {
  const formats::Codec& codec = *formats::find_codec("mxfp4");
  constexpr uint32_t kManyRows = 401, kCols = 64, kCount = 8, kGridX = 250;
  std::vector<uint8_t> packed(*formats::packed_bytes(codec, formats::LayoutId::kPlanes, kManyRows, kCols));
  ASSERT_TRUE(formats::fill_random(codec, formats::LayoutId::kPlanes, kManyRows, kCols, 3, packed).ok());
  packed[0] = 255;                 // row 0: a scale that is no number
  packed[2 * (kManyRows - 1)] = 0; // the last row: a subnormal one, beside a zero
  for (uint32_t i = 0; i < 16; ++i)
    packed[2 * kManyRows / 16 * 16 + 16 + 16 * (2 * kManyRows - 1) + i] = 0;
  const Words weights = words_of(packed);
  std::vector<std::vector<float>> xs;
  for (uint32_t t = 0; t < kCount; ++t)
    xs.push_back(random_floats(kCols, 100 + t));
  const auto run_on = [&](const std::vector<std::vector<float>>& inputs, uint32_t tokens) {
    Dispatch d;
    d.buffers[kWeights] = weights;
    for (const std::vector<float>& x : inputs)
      append(d.buffers[kArena], in_lane_order(x));
    const uint32_t y_at = static_cast<uint32_t>(d.buffers[kArena].size());
    d.buffers[kArena].resize(y_at + inputs.size() * kManyRows);
    d.buffers[kStep] = {static_cast<uint32_t>(inputs.size()), 0, 0, 0};
    d.push = {0, 0, y_at, 0, 0, lane_floats(kCols), kManyRows};
    d.grid = {kGridX, 2, 1};
    run("matmul_mxfp4", {{0, 64}, {1, kManyRows}, {2, kCols}, {3, 64}, {4, tokens}}, d);
    return Words(d.buffers[kArena].begin() + y_at, d.buffers[kArena].end());
  };
  const Words one = run_on({xs[0]}, 1), many = run_on(xs, 8);
  if (HasFatalFailure())
    return;
  std::vector<float> w(kCols);
  for (const uint32_t r : {1u, 249u, 250u, 251u, kManyRows - 1}) {
    ASSERT_TRUE(
        formats::decode_packed_row(codec, formats::LayoutId::kPlanes, packed, kManyRows, kCols, r, w.data()).ok());
    double sum = 0, magnitude = 0;
    for (uint32_t i = 0; i < kCols; ++i) {
      sum += static_cast<double>(w[i]) * xs[0][i];
      magnitude += std::fabs(static_cast<double>(w[i]) * xs[0][i]);
    }
    if (r != kManyRows - 1 || device->keeps_subnormals())
      EXPECT_LE(std::fabs(std::bit_cast<float>(one[r]) - sum), kExactBound * magnitude) << "row " << r;
  }
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(one[0])));
  EXPECT_TRUE(std::equal(one.begin() + 1, one.end(), many.begin() + 1));
}

} // namespace
} // namespace cortiq::codegen
