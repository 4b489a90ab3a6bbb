#include "formats/codec/q4tp_ladder.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"
#include "test/unit/codec/golden.h"

namespace cortiq::formats {
namespace {

float vector_exp2(float x) {
  return q4tp_exp2_vector(f32_to_f16(x));
}

/// The specification's example, 2.11.
TEST(VectorLadder, IsTheSpecificationsExample) {
  const Q4TPLadder ladder(q4tp_exp2_vector(0xc640), q4tp_exp2_vector(0x293f));
  const std::pair<int, uint32_t> kRungs[] = {
      {0, 0x3c5744fc}, {1, 0x3c5d7903}, {2, 0x3c63dacc}, {15, 0x3ca4d2c7}, {31, 0x3d01d5d6}};
  for (const auto& [rung, bits] : kRungs)
    EXPECT_EQ(std::bit_cast<uint32_t>(ladder.rung[rung]), bits) << rung;
}

TEST(VectorLadder, HasItsOwnWordsAtTheEnds) {
  EXPECT_EQ(vector_exp2(0), 1.0f);
  EXPECT_EQ(vector_exp2(127), std::ldexp(1.0f, 127));
  EXPECT_EQ(std::bit_cast<uint32_t>(vector_exp2(128)), 0x007f8000u);
  EXPECT_EQ(std::bit_cast<uint32_t>(vector_exp2(std::numeric_limits<float>::infinity())), 0x007f8000u);
  EXPECT_EQ(vector_exp2(-126), std::ldexp(1.0f, -126));
  EXPECT_EQ(vector_exp2(-140), std::ldexp(1.0f, -126));
  EXPECT_EQ(vector_exp2(-150), 0.0f);
  EXPECT_EQ(vector_exp2(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(vector_exp2(std::numeric_limits<float>::quiet_NaN())));
}

/// Between them it is exp2f's value or a neighbour of it.
TEST(VectorLadder, IsAtMostOneUlpFromExp2) {
  int differ = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = half_to_float(static_cast<uint16_t>(bits));
    if (!(x >= -126 && x < 128))
      continue;
    const auto got = std::bit_cast<int32_t>(q4tp_exp2_vector(static_cast<uint16_t>(bits)));
    const auto want = std::bit_cast<int32_t>(q4tp_exp2(static_cast<uint16_t>(bits)));
    ASSERT_LE(std::abs(got - want), 1) << "exp2 of half " << bits;
    differ += got != want;
  }
  EXPECT_GT(differ, 1000); // else it would be no ladder of its own
}

/// The reading that a model's options ask for, while this object lives.
struct VectorReading {
  VectorReading() { read_q4tp_as(Q4TPReading::kVector); }
  ~VectorReading() { read_q4tp_as(Q4TPReading::kExact); }
};

/// In the layout of kernels, which holds the powers of two themselves, weights are the payload's in either reading.
TEST(VectorLadder, LayoutsHoldTheConstantsOfTheReading) {
  constexpr uint64_t kRows = 19, kCols = 608;
  const Codec& codec = codec_info(CodecId::kQ4TP);
  std::vector<uint8_t> payload(*codec.payload_bytes(codec, kRows, kCols));
  ASSERT_TRUE(fill_random(codec, LayoutId::kVerbatim, kRows, kCols, 5, payload).ok());
  // Exponents with the two readings apart, as about one in seven is.
  uint16_t apart = f32_to_f16(-6.25f);
  while (q4tp_exp2(apart) == q4tp_exp2_vector(apart))
    ++apart;
  for (uint64_t r = 0; r < kRows; ++r)
    std::memcpy(payload.data() + kRows * kCols / 2 + 4 * r, &apart, 2);
  auto decoded = [&](LayoutId layout) {
    std::vector<uint8_t> packed(*packed_bytes(codec, layout, kRows, kCols));
    EXPECT_TRUE(pack(codec, layout, payload, kRows, kCols, {}, packed).ok());
    std::vector<float> out(kRows * kCols);
    for (uint64_t r = 0; r < kRows; ++r)
      EXPECT_TRUE(decode_packed_row(codec, layout, packed, kRows, kCols, r, &out[r * kCols]).ok());
    return out;
  };
  const std::vector<float> exact = decoded(LayoutId::kVerbatim);
  EXPECT_EQ(decoded(LayoutId::kR16), exact);
  EXPECT_EQ(decoded(LayoutId::kPlanes), exact);
  const VectorReading reading;
  const std::vector<float> vector = decoded(LayoutId::kVerbatim);
  EXPECT_NE(vector, exact);
  EXPECT_EQ(decoded(LayoutId::kR16), vector);
  EXPECT_EQ(decoded(LayoutId::kPlanes), vector);
}

TEST(VectorLadder, RungsAndWeightsAreTheGoldenOnes) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  const Codec& codec = codec_info(CodecId::kQ4TP);
  const VectorReading reading;
  int cases = 0;
  for (const auto& test : golden.manifest["cases"]) {
    if (!test.contains("ladder_vector"))
      continue;
    SCOPED_TRACE(test["name"].get<std::string>());
    const uint64_t rows = test["rows"], cols = test["cols"], tiles = cols / 32;
    const std::vector<uint8_t> payload = golden.bytes(test["files"]["packed"]["file"]);
    const std::vector<uint32_t> want = golden.words<uint32_t>(test["ladder_vector"]["file"]);
    ASSERT_EQ(want.size(), rows * 32);
    std::vector<float> weights(cols);
    for (uint64_t r = 0; r < rows; ++r) {
      const uint8_t* params = payload.data() + rows * tiles * 16 + 4 * r;
      const Q4TPLadder ladder(q4tp_exp2_vector(load_u16(params)), q4tp_exp2_vector(load_u16(params + 2)));
      for (int c = 0; c < 32; ++c)
        ASSERT_EQ(std::bit_cast<uint32_t>(ladder.rung[c]), want[r * 32 + c]) << "row " << r << " rung " << c;
      codec.decode_row(payload.data(), rows, cols, r, weights.data());
      const uint8_t* codes = payload.data() + rows * (tiles * 16 + 4) + r * ((5 * tiles + 7) / 8);
      for (uint64_t i = 0; i < cols; ++i) {
        const uint64_t bit = 5 * (i / 32);
        uint32_t code = 0;
        for (uint64_t b = 0; b < 5; ++b)
          code |= (codes[(bit + b) / 8] >> ((bit + b) % 8) & 1u) << b;
        const uint32_t level = payload[(r * cols + i) / 2] >> (i % 2 * 4) & 15;
        ASSERT_EQ(weights[i], (static_cast<float>(level) - 8) * std::bit_cast<float>(want[r * 32 + code]))
            << "weight [" << r << ", " << i << "]";
      }
    }
    ++cases;
  }
  EXPECT_GE(cases, 5);
}

} // namespace
} // namespace cortiq::formats
