// Activations in f16: their rows, and products with them, by the arithmetic that every device has.

#include <cmath>

#include "formats/artifact/shader_abi.h"
#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

#include "codegen/spirv/specialise.h"

namespace cortiq::codegen {
namespace {

using formats::Codec;
using formats::LayoutId;

constexpr uint32_t kPadding = 128; ///< of shaders/common/half_row.glsl

float half_value(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const float fraction = static_cast<float>(bits & 1023) / 1024;
  const float size = exponent == 31  ? INFINITY
                     : exponent == 0 ? std::ldexp(fraction, -14)
                                     : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

uint32_t padded(uint32_t count) {
  return (count + kPadding - 1) / kPadding * kPadding;
}
/// Words of a row, and a multiple of four, so that the next one is aligned.
uint32_t row_words(uint32_t count) {
  return padded(count) / 2 + 4;
}

/// Which half of a word, and which word, has value i.
uint32_t half_of(const Words& row, uint32_t i) {
  return row[i / 4 * 2 + i % 2] >> (i % 4 / 2 * 16) & 0xffff;
}

class Half : public ShaderTest {
protected:
  Words rows_of(const std::vector<std::vector<float>>& x) {
    const auto count = static_cast<uint32_t>(x[0].size()), tokens = static_cast<uint32_t>(x.size());
    const uint32_t stride = (count + 3) / 4 * 4;
    Dispatch d;
    for (const std::vector<float>& row : x) {
      append(d.buffers[kArena], row);
      d.buffers[kArena].resize((d.buffers[kArena].size() + 3) / 4 * 4);
    }
    const auto at = static_cast<uint32_t>(d.buffers[kArena].size());
    d.buffers[kArena].resize(at + tokens * row_words(count), 0xffffffffu);
    d.buffers[kStep] = {tokens, 0, 0, 0};
    d.push = {0, 0, at, 0, 0, stride, row_words(count)};
    d.grid = {1, 1, tokens};
    run("half_rows", {{formats::kSpecLocal, 64}, {formats::kSpecRows, count}}, d);
    return Words(d.buffers[kArena].begin() + at, d.buffers[kArena].end());
  }

  struct Shape {
    uint32_t rows, tokens, sub_rows, sub_tokens, ahead, sets, rings;
  };

  Words product(const std::string& codec, const Words& weights, uint32_t rows, uint32_t cols, const Words& x,
                uint32_t count, const Shape& s) {
    Dispatch d;
    d.buffers[kWeights] = weights;
    d.buffers[kArena] = x;
    const auto at = static_cast<uint32_t>(x.size());
    d.buffers[kArena].resize(at + count * rows);
    d.buffers[kStep] = {count, 0, 0, 0};
    d.push = {0, 0, at, 0, 0, row_words(cols), rows};
    d.grid = {(rows + s.rows - 1) / s.rows, 1, (count + s.tokens - 1) / s.tokens};
    const uint32_t local = s.rows / s.sub_rows * (s.tokens / s.sub_tokens) * 32;
    run("matmul_cm_plain_half_" + codec,
        {{formats::kSpecLocal, local},
         {formats::kSpecRows, rows},
         {formats::kSpecCols, cols},
         {formats::kSpecTokens, s.tokens},
         {formats::kSpecTeamRows, s.rows * 32 / local},
         {formats::kSpecAhead, s.ahead},
         {formats::kSpecSets, s.sets},
         {formats::kSpecSubRows, s.sub_rows},
         {formats::kSpecSubTokens, s.sub_tokens},
         {formats::kSpecRings, s.rings}},
        d);
    return Words(d.buffers[kArena].begin() + at, d.buffers[kArena].end());
  }
};

TEST_F(Half, RowsKeepElevenBitsWhateverTheirSize) {
  constexpr uint32_t kCount = 300;
  std::vector<std::vector<float>> x;
  for (const float size : {1.0f, 1e-4f, 3e30f, 1e-30f, 7e4f, 0.0f}) {
    x.push_back(random_floats(kCount, 5));
    for (float& value : x.back())
      value *= size;
  }
  const Words rows = rows_of(x);
  ASSERT_FALSE(HasFatalFailure());
  for (size_t t = 0; t < x.size(); ++t) {
    const Words row(rows.begin() + static_cast<std::ptrdiff_t>(t * row_words(kCount)),
                    rows.begin() + static_cast<std::ptrdiff_t>((t + 1) * row_words(kCount)));
    const float back = std::bit_cast<float>(row[padded(kCount) / 2]);
    int exponent = 0;
    ASSERT_EQ(std::frexp(back, &exponent), 0.5f) << "a power of two";
    for (uint32_t i = 0; i < padded(kCount); ++i) {
      const float value = half_value(half_of(row, i));
      ASSERT_TRUE(std::isfinite(value)) << "row " << t << " value " << i;
      const float exact = i < kCount ? x[t][i] : 0.0f;
      ASSERT_LE(std::fabs(double{value} * back - exact), std::fabs(exact) * 0x1p-11 + back * 0x1p-24)
          << "row " << t << " value " << i;
    }
  }
}

// However tiles are shaped and walked, the sums are made in one order.
TEST_F(Half, EveryTileGivesTheSameBits) {
  constexpr uint32_t kRows = 38, kCount = 11;
  for (const auto& [name, cols] : {std::pair{"q4_0", 224u}, {"q6_k", 256u}, {"q4_k", 256u}}) {
    SCOPED_TRACE(name);
    const Codec& codec = *formats::find_codec(name);
    std::vector<uint8_t> packed(*formats::packed_bytes(codec, LayoutId::kPlanes, kRows, cols));
    ASSERT_TRUE(formats::fill_random(codec, LayoutId::kPlanes, kRows, cols, 3, packed).ok());
    std::vector<std::vector<float>> x;
    for (uint32_t t = 0; t < kCount; ++t)
      x.push_back(random_floats(cols, t));
    const Words halves = rows_of(x), weights = words_of(packed);
    const Words first = product(name, weights, kRows, cols, halves, kCount, {32, 16, 16, 8, 1, 1, 1});
    ASSERT_FALSE(HasFatalFailure());
    // One tile has two products a subgroup, in both directions; all codecs are walked alike.
    for (const Shape& shape : {Shape{32, 16, 32, 16, 1, 1, 1}, Shape{32, 16, 16, 8, 2, 1, 2},
                               Shape{16, 16, 16, 8, 1, 2, 1}, Shape{16, 8, 16, 8, 1, 2, 2}}) {
      if (shape.rings == 1 && shape.sets == 1 && std::string(name) != "q4_0")
        continue;
      EXPECT_EQ(product(name, weights, kRows, cols, halves, kCount, shape), first)
          << shape.rows << " x " << shape.tokens << ", " << shape.sets << " sets, " << shape.rings << " rings";
    }
    std::vector<float> w(cols);
    for (uint32_t r = 0; r < kRows; ++r) {
      ASSERT_TRUE(formats::decode_packed_row(codec, LayoutId::kPlanes, packed, kRows, cols, r, w.data()).ok());
      double largest = 0;
      for (const float value : w)
        largest = std::max(largest, std::fabs(double{value}));
      for (uint32_t t = 0; t < kCount; ++t) {
        double sum = 0, magnitude = 0;
        for (uint32_t i = 0; i < cols; ++i) {
          sum += double{w[i]} * x[t][i];
          magnitude += largest * std::fabs(double{x[t][i]}); // a minimum is rounded as what it is taken from
        }
        ASSERT_LE(std::fabs(std::bit_cast<float>(first[t * kRows + r]) - sum), 0x1p-10 * magnitude)
            << "row " << r << " token " << t;
      }
    }
  }
}

TEST_F(Half, FiniteInputsGiveNumbers) {
  constexpr uint32_t kRows = 32, kCols = 256;
  const Codec& codec = *formats::find_codec("q4_0");
  std::vector<uint8_t> packed(*formats::packed_bytes(codec, LayoutId::kPlanes, kRows, kCols));
  ASSERT_TRUE(formats::fill_random(codec, LayoutId::kPlanes, kRows, kCols, 3, packed).ok());
  for (uint32_t i = 0; i < kRows * kCols / 32; ++i) { // scales come first: the largest that f16 has, of both signs
    packed[2 * i] = 0xff;
    packed[2 * i + 1] = i % 2 != 0 ? 0xfb : 0x7b;
  }
  std::vector<float> x = random_floats(kCols, 1);
  for (float& value : x)
    value *= 1e20f;
  const Words y = product("q4_0", words_of(packed), kRows, kCols, rows_of({x}), 1, {32, 16, 16, 8, 1, 1, 1});
  for (const float value : floats(y))
    EXPECT_TRUE(std::isfinite(value));
}

} // namespace
} // namespace cortiq::codegen
