// Activations in 8 bits: their form, and products with them.

#include <cmath>

#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/expect_q8.h"

#include "codegen/spirv/specialise.h"

namespace cortiq::codegen {
namespace {

using formats::Codec;
using formats::LayoutId;

/// Bound of a product's error against the product of the same 8-bit activations, in parts of the sum of magnitudes.
constexpr double kFastBound = 4e-6;

class Fast : public ShaderTest {
protected:
  Words quantized(const std::vector<float>& x) {
    const uint32_t count = static_cast<uint32_t>(x.size());
    Dispatch d;
    append(d.buffers[kArena], x);
    d.buffers[kArena].resize((count + 3) / 4 * 4);
    const uint32_t at = static_cast<uint32_t>(d.buffers[kArena].size());
    d.buffers[kArena].resize(at + q8_words(count));
    d.buffers[kStep] = {1, 0, 0, 0};
    d.push = {0, 0, at};
    d.grid = {(count + 127) / 128, 1, 1};
    run("quantize", {{0, 32}, {1, count}}, d);
    return Words(d.buffers[kArena].begin() + at, d.buffers[kArena].end());
  }

  void check(const Codec& codec, uint32_t rows, uint32_t cols) {
    SCOPED_TRACE(codec.name);
    std::vector<uint8_t> packed(*formats::packed_bytes(codec, LayoutId::kPlanes, rows, cols));
    ASSERT_TRUE(formats::fill_random(codec, LayoutId::kPlanes, rows, cols, 3, packed).ok());
    const Q8 x = quantize(random_floats(cols, 7));
    Dispatch d;
    d.buffers[kWeights] = words_of(packed);
    d.buffers[kArena] = q8_row(x);
    const uint32_t y_at = static_cast<uint32_t>(d.buffers[kArena].size());
    d.buffers[kArena].resize(y_at + rows);
    d.buffers[kStep] = {1, 0, 0, 0};
    d.push = {0, 0, y_at, 0, 0, q8_words(cols), rows};
    d.grid = {(rows + 1) / 2, 1, 1};
    run("matmul_i8_" + std::string(codec.name), {{0, 64}, {1, rows}, {2, cols}}, d);
    if (HasFatalFailure())
      return;
    std::vector<float> w(cols);
    for (uint32_t r = 0; r < rows; ++r) {
      ASSERT_TRUE(formats::decode_packed_row(codec, LayoutId::kPlanes, packed, rows, cols, r, w.data()).ok());
      double sum = 0, magnitude = 0;
      for (uint32_t i = 0; i < cols; ++i) {
        const double product = static_cast<double>(w[i]) * x.codes[i] * x.scales[i / 32];
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_LE(std::fabs(std::bit_cast<float>(d.buffers[kArena][y_at + r]) - sum), kFastBound * magnitude)
          << "row " << r;
    }
  }
};

TEST_F(Fast, Quantizes) {
  std::vector<float> x = random_floats(1100, 3);
  std::fill_n(x.begin() + 64, 32, 0.0f);
  expect_q8(quantized(x), x);
}

TEST_F(Fast, EveryIntegerCodec) {
  if (!device->integer_dot())
    GTEST_SKIP() << device->name() << " has no packed integer dot product";
  int checked = 0;
  for (const Codec& codec : formats::codec_table())
    if (has_shader_template("matmul_i8_" + std::string(codec.name))) {
      check(codec, 3, codec.block < 32 ? 96 : std::max<uint32_t>(codec.block, 64));
      ++checked;
    }
  EXPECT_EQ(checked, 45);
}

// Tiles of 64 rows by 32 tokens give the bits of single rows, whatever number of groups the lanes have.
TEST_F(Fast, TilesGiveTheBitsOfRows) {
  if (!device->integer_dot())
    GTEST_SKIP() << device->name() << " has no packed integer dot product";
  for (const auto& [name, cols] : {std::pair{"q4_0", 1376u}, {"q6_k", 512u}, {"g8_0", 96u}}) {
    SCOPED_TRACE(name);
    constexpr uint32_t kManyRows = 70, kCount = 35;
    const Codec& codec = *formats::find_codec(name);
    std::vector<uint8_t> packed(*formats::packed_bytes(codec, LayoutId::kPlanes, kManyRows, cols));
    ASSERT_TRUE(formats::fill_random(codec, LayoutId::kPlanes, kManyRows, cols, 3, packed).ok());
    Dispatch d;
    d.buffers[kWeights] = words_of(packed);
    for (uint32_t t = 0; t < kCount; ++t) {
      const Words row = q8_row(quantize(random_floats(cols, t)));
      d.buffers[kArena].insert(d.buffers[kArena].end(), row.begin(), row.end());
    }
    const uint32_t y_at = static_cast<uint32_t>(d.buffers[kArena].size());
    d.buffers[kArena].resize(y_at + kCount * kManyRows);
    d.buffers[kStep] = {kCount, 0, 0, 0};
    d.push = {0, 0, y_at, 0, 0, q8_words(cols), kManyRows};
    d.grid = {kManyRows / 2, 1, kCount};
    run("matmul_i8_" + std::string(name), {{0, 64}, {1, kManyRows}, {2, cols}}, d);
    const Words rows(d.buffers[kArena].begin() + y_at, d.buffers[kArena].end());
    std::fill(d.buffers[kArena].begin() + y_at, d.buffers[kArena].end(), 0u);
    d.grid = {2, 1, 2};
    run("matmul_tile_i8_" + std::string(name), {{0, 256}, {1, kManyRows}, {2, cols}, {4, 32}, {5, 8}}, d);
    ASSERT_EQ(Words(d.buffers[kArena].begin() + y_at, d.buffers[kArena].end()), rows);
  }
}

} // namespace
} // namespace cortiq::codegen
