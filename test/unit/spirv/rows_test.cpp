// Operations that move, turn or score whole rows: columns in other places, Hadamard transforms, scores of experts.

#include <bit>
#include <cmath>
#include <limits>

#include "formats/artifact/shader_abi.h"
#include "formats/codec/codec.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/expect_q8.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

constexpr uint32_t kTokens = 3;

class RowsTest : public ShaderTest {
protected:
  /// The rows of all tokens in lane order.
  static std::vector<float> woven(const std::vector<float>& x) {
    std::vector<float> out;
    const size_t width = x.size() / kTokens;
    for (size_t first = 0; first < x.size(); first += width) {
      const std::vector<float> row = in_lane_order({x.begin() + first, x.begin() + first + width});
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }
  /// What the operation makes of rows of `x`, in rows of `out` words. `table` is at kPushVector.
  std::vector<uint32_t> results(const char* name, const std::vector<std::pair<uint32_t, uint32_t>>& constants,
                                const std::vector<float>& x, const Words& table, uint32_t groups, uint32_t out) {
    Dispatch d;
    append(d.buffers[kArena], x);
    const auto out_at = static_cast<uint32_t>((x.size() + 3) / 4 * 4);
    d.buffers[kArena].resize(out_at + kTokens * out);
    d.buffers[kVectors] = table;
    d.buffers[kStep] = {kTokens, 0, 0, 0};
    d.push.resize(kPushWords);
    d.push[kPushInputStride] = static_cast<uint32_t>(x.size()) / kTokens;
    d.push[kPushOut] = out_at;
    d.push[kPushOutStride] = out;
    d.grid = {groups, 1, kTokens};
    run(name, constants, d);
    const Words& arena = d.buffers[kArena];
    return {arena.begin() + out_at, arena.end()};
  }
};

TEST_F(RowsTest, ColumnsInOtherPlaces) {
  constexpr uint32_t kIn = 45, kOut = 70;
  const std::vector<float> x = random_floats(kTokens * kIn, 1);
  Words from(kOut);
  for (uint32_t i = 0; i < kOut; ++i)
    from[i] = i % 5 == 3 ? 0xffffffffu : i * 31 % kIn;
  for (const bool lanes : {false, true}) {
    SCOPED_TRACE(lanes);
    const uint32_t stride = lanes ? lane_floats(kOut) : kOut;
    const auto got = results("place", {{kSpecLocal, 64}, {kSpecRows, kOut}, {kSpecOutOrder, lanes}}, x, from,
                             (kOut + 63) / 64, stride);
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t i = 0; i < kOut; ++i)
        EXPECT_EQ(std::bit_cast<float>(got[t * stride + (lanes ? lane_place(i) : i)]),
                  i % 5 == 3 ? 0.0f : x[t * kIn + from[i]])
            << t << " " << i;
  }
}

float rounded(float x) {
  return f16_to_f32(f32_to_f16(x));
}

/// As the CPU has it: additions in this order, the factors in front or behind.
std::vector<float> transformed(std::vector<float> x, const std::vector<float>& factors, uint32_t block, bool inverse,
                               bool half) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = !inverse ? x[i] * factors[i] : half ? rounded(x[i]) : x[i];
  for (size_t first = 0; first < x.size(); first += block)
    for (uint32_t near = 1; near < block; near *= 2)
      for (uint32_t i = 0; i < block; ++i)
        if ((i & near) == 0) {
          float &low = x[first + i], &high = x[first + i + near];
          const float a = low, b = high;
          low = a + b;
          high = a - b;
        }
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = inverse ? x[i] * factors[i] : x[i];
    x[i] = half ? rounded(x[i]) : x[i];
  }
  return x;
}

TEST_F(RowsTest, HadamardHasTheBitsOfTheCpu) {
  struct Case {
    uint32_t width, block;
    bool inverse, half;
  };
  for (const auto& [width, block, inverse, half] :
       {Case{96, 32, false, false}, Case{256, 256, true, false}, Case{2048, 1024, false, true},
        Case{128, 64, true, true}, Case{40, 8, false, true}, Case{7, 1, true, true}}) {
    SCOPED_TRACE(testing::Message() << width << " " << block << " " << inverse << half);
    std::vector<float> x = random_floats(kTokens * width, width);
    for (uint32_t i = 0; i < width; ++i)
      x[i] *= i % 3 == 0 ? 1e-6f : 1; // values that are no normal f16
    Words negative((width + 31) / 32);
    std::vector<float> factors(width);
    const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
    for (uint32_t i = 0; i < width; ++i) {
      const bool minus = i * i % 7 < 3;
      negative[i / 32] |= uint32_t{minus} << i % 32;
      factors[i] = minus ? -scale : scale;
    }
    std::vector<std::pair<uint32_t, uint32_t>> constants{
        {kSpecLocal, 64},        {kSpecRows, width},
        {kSpecGroup, block},     {kSpecScale, std::bit_cast<uint32_t>(scale)},
        {kSpecInverse, inverse}, {kSpecRounded, half},
        {kSpecInOrder, half}};
    const std::vector<float> rows = half ? woven(x) : x;
    const auto got = results("hadamard", constants, rows, negative, width / block, width);
    std::vector<uint32_t> eight;
    if (block % 32 == 0) {
      constants.push_back({kSpecQuantOut, 1});
      eight = results("hadamard", constants, rows, negative, width / block, q8_words(width));
    }
    for (uint32_t t = 0; t < kTokens; ++t) {
      const std::vector<float> want =
          transformed({x.begin() + t * width, x.begin() + (t + 1) * width}, factors, block, inverse, half);
      for (uint32_t i = 0; i < width; ++i)
        ASSERT_EQ(got[t * width + i], std::bit_cast<uint32_t>(want[i])) << t << " " << i;
      if (eight.empty())
        continue;
      expect_q8(std::span(eight).subspan(t * q8_words(width), q8_words(width)), want);
    }
  }
}

TEST_F(RowsTest, HalvesAreRoundedToEven) {
  const std::vector<float> x{1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 0x1p-24f * 1.5f, 0x1p-24f * 2.5f, 0x1p-25f,     -0x1p-14f,
                             65519.0f,     65520.0f,         -70000.0f,       0x1.ffep-15f,    0x1.fffp-15f, 0.0f};
  ASSERT_EQ(x.size() % kTokens, 0u);
  const auto width = static_cast<uint32_t>(x.size()) / kTokens;
  const auto got = results("hadamard", {{kSpecLocal, 64}, {kSpecRows, width}, {kSpecGroup, 1}, {kSpecRounded, 1}}, x,
                           {0}, width, width);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(std::bit_cast<float>(got[i]), rounded(x[i])) << x[i];
}

TEST_F(RowsTest, ScoresByResonance) {
  constexpr uint32_t kWidth = 100, kExperts = 5, kShells = 2;
  for (const uint32_t rank : {0u, 3u}) {
    SCOPED_TRACE(rank);
    const std::vector<float> x = random_floats(kTokens * kWidth, 1), mean = random_floats(kExperts * kWidth, 2),
                             basis = random_floats(kExperts * rank * kWidth, 3), bias = random_floats(kExperts, 4);
    // The first shell lets everything in, the second nothing.
    const std::vector<float> shells{1e9f, -1e9f};
    Words table(4 * kExperts);
    const auto add = [&](const std::vector<float>& values) {
      const auto start = static_cast<uint32_t>(table.size());
      append(table, values);
      return start;
    };
    const uint32_t means = add(mean), bases = add(basis), biases = add(bias), shell = add(shells);
    for (uint32_t e = 0; e < kExperts; ++e) {
      table[4 * e] = means + e * kWidth;
      table[4 * e + 1] = bases + e * rank * kWidth;
      table[4 * e + 2] = biases + e;
      table[4 * e + 3] = e < kExperts - kShells ? 0xffffffffu : shell + e - (kExperts - kShells);
    }
    const auto got =
        results("resonance", {{kSpecLocal, 64}, {kSpecCols, kWidth}, {kSpecGroup, rank}, {kSpecInOrder, rank != 0}},
                rank != 0 ? woven(x) : x, table, kExperts, kExperts);
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t e = 0; e < kExperts; ++e) {
        double error = 0, size = 0;
        std::vector<double> along(rank);
        for (uint32_t i = 0; i < kWidth; ++i) {
          const double away = double{x[t * kWidth + i]} - mean[e * kWidth + i];
          error += away * away;
          for (uint32_t r = 0; r < rank; ++r)
            along[r] += basis[(e * rank + r) * kWidth + i] * away;
        }
        size = error;
        for (const double a : along) {
          error -= a * a;
          size += a * a;
        }
        const float score = std::bit_cast<float>(got[t * kExperts + e]);
        if (e + 1 == kExperts)
          EXPECT_EQ(score, -std::numeric_limits<float>::infinity());
        else
          EXPECT_NEAR(score, bias[e] - error, 1e-6 * size) << t << " " << e;
      }
  }
}

} // namespace
} // namespace cortiq::codegen
