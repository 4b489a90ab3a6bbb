// Encoders against what the specification states of their bytes, and against themselves: threads, tails, zeros.

#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cmf/hash64.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder.h"
#include "formats/encode/scale_ladder.h"
#include "test/unit/codec/golden.h"
#include "test/unit/encode/samples.h"

namespace cortiq::formats {
namespace {

using ::testing::Each;

/// The input of the specification's encoder checks (appendix A), shape [2, 64].
std::vector<float> appendix_input() {
  std::vector<float> values(128);
  for (int i = 0; i < 128; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((37 * i + 11) % 101 - 50) * 0.013f;
  return values;
}

std::vector<uint8_t> must_encode(CodecId id, std::span<const float> values, uint64_t rows, uint64_t cols,
                                 const EncodeOptions& options = {}) {
  StatusOr<std::vector<uint8_t>> payload = encode_matrix(*find_encoder(id), values, rows, cols, options);
  EXPECT_TRUE(payload.ok()) << codec_info(id).name << " " << payload.status().message();
  return payload.ok() ? *payload : std::vector<uint8_t>();
}

TEST(EncoderRules, AppendixHashes) {
  EXPECT_EQ(hash64(must_encode(CodecId::kMXFP4, appendix_input(), 2, 64)), 0xec1589b63048697fu);
  EXPECT_EQ(hash64(must_encode(CodecId::kQ82F, appendix_input(), 2, 64)), 0x781fd03e6a8eaa18u);
}

TEST(EncoderRules, HalvesOfTheAppendix) {
  const auto of_bits = [](uint32_t bits) { return cmf_half(std::bit_cast<float>(bits)); };
  EXPECT_EQ(cmf_half(1.0f), 0x3C00);
  EXPECT_EQ(cmf_half(-2.5f), 0xC100);
  EXPECT_EQ(cmf_half(65504.0f), 0x7BFF);
  EXPECT_EQ(of_bits(0x477FEFE6), 0x7BFF);
  EXPECT_EQ(cmf_half(65520.0f), 0x7C00);
  EXPECT_EQ(cmf_half(0x1p-14f), 0x0400);
  EXPECT_EQ(of_bits(0x33000000), 0x0001);
  EXPECT_EQ(of_bits(0x32F91BAD), 0x0000);
  EXPECT_EQ(of_bits(0x3F801000), 0x3C00);
  EXPECT_EQ(of_bits(0x3F803000), 0x3C02);
}

TEST(EncoderRules, HalvesOfTheGoldenVectors) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  const auto& files = golden.manifest["f16_conversion"]["files"];
  const std::vector<float> values = golden.words<float>(files["x"]["file"]);
  const std::vector<uint16_t> halves = golden.words<uint16_t>(files["cortiq_core"]["file"]);
  ASSERT_EQ(values.size(), halves.size());
  ASSERT_FALSE(values.empty());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(cmf_half(values[i]), halves[i]) << values[i];
}

TEST(EncoderRules, SeriesAreTheFunctions) {
  for (double x : {0x1p-14, 0.001, 0.7, 1.0, 1.9999, 3.0, 65504.0}) {
    EXPECT_NEAR(series_log2(x), std::log2(x), 1e-13) << x;
    EXPECT_NEAR(series_exp2(std::log2(x)) / x, 1.0, 1e-13) << x;
  }
}

TEST(EncoderRules, LaddersReachTheirTop) {
  for (double lo : {-13.9, -6.2, 0.3})
    for (double span : {0.0, 1e-6, 0.4, 3.0, 11.0}) {
      const LadderParameters fit = fit_ladder(lo, lo + span, 31);
      const double step = half_to_float(fit.step), first = half_to_float(fit.lo);
      EXPECT_GT(step, 0);
      EXPECT_GE(first + 31 * step, lo + span);
    }
}

// What every encoder writes has the size and the form that the reader asks for, whatever the number of threads.
TEST(EncoderRules, PayloadsPassTheReadersChecks) {
  constexpr uint64_t kRows = 37, kCols = 256;
  const std::vector<float> values = weights(kRows, kCols, 1);
  for (const Encoder* encoder : encoder_table()) {
    const Codec& codec = codec_info(encoder->codec);
    const std::vector<uint8_t> payload = must_encode(encoder->codec, values, kRows, kCols);
    const Status status = check_payload(codec, payload, kRows, kCols, /*strict=*/true);
    EXPECT_TRUE(status.ok()) << codec.name << " " << status.message();
    EXPECT_EQ(payload, must_encode(encoder->codec, values, kRows, kCols, {.threads = 5})) << codec.name;
  }
}

TEST(EncoderRules, ZerosStayZerosExceptInSignCodecs) {
  const std::vector<float> zeros(4 * 128);
  for (const Encoder* encoder : encoder_table()) {
    const std::vector<float> back =
        decode(codec_info(encoder->codec), must_encode(encoder->codec, zeros, 4, 128, {.kept_outliers = 0}), 4, 128);
    switch (encoder->codec) {
    case CodecId::kQ1:
    case CodecId::kQ1S:
    case CodecId::kQ1G:
      EXPECT_THAT(back, Each(0x1p-14f)) << codec_info(encoder->codec).name;
      break;
    default:
      EXPECT_THAT(back, Each(0.0f)) << codec_info(encoder->codec).name;
    }
  }
}

TEST(EncoderRules, GroupsOfQ4BlockRunOverRowEnds) {
  for (uint64_t cols : {uint64_t{1}, uint64_t{7}, uint64_t{50}, uint64_t{77}}) {
    constexpr uint64_t kRows = 45;
    const std::vector<float> values = weights(kRows, cols, 2);
    const std::vector<uint8_t> payload = must_encode(CodecId::kQ4Block, values, kRows, cols);
    // The same values as one row: groups do not know of rows.
    EXPECT_EQ(payload, must_encode(CodecId::kQ4Block, values, 1, kRows * cols)) << cols;
    const std::vector<float> back = decode(codec_info(CodecId::kQ4Block), payload, kRows, cols);
    EXPECT_LT(squared_error(values, back), 0.05 * squared_error(values, std::vector<float>(values.size()))) << cols;
  }
}

TEST(EncoderRules, WidthsOfVBitFollowTheRowsSizes) {
  std::vector<float> values(3 * 32, 1.0f);
  for (int i = 0; i < 32; ++i) {
    values[static_cast<size_t>(i)] = 0.25f;
    values[static_cast<size_t>(64 + i)] = 4.0f;
  }
  // Logarithms -2, 0, 2 around their mean 0: targets 2.25, 4.25, 6.25, of which the nearest widths are 3, 4, 6.
  const std::vector<uint8_t> payload = must_encode(CodecId::kVBit, values, 3, 32);
  EXPECT_THAT(std::vector<uint8_t>(payload.begin(), payload.begin() + 3), ::testing::ElementsAre(3, 4, 6));
}

/// A matrix of zeros too large to exist.
class EndlessRows : public RowSource {
public:
  uint64_t rows() const override { return (uint64_t{1} << 32) / 64 + 1; }
  uint64_t cols() const override { return 64; }
  void read(uint64_t, float* out) const override { std::fill_n(out, cols(), 0.0f); }
};

TEST(EncoderRules, Q1SRefusesWhatItsIndicesCannotReach) {
  MemorySink sink;
  const Status status = find_encoder(CodecId::kQ1S)->encode(EndlessRows(), sink, {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("2^32"), std::string::npos) << status.message();
  EXPECT_TRUE(sink.take().empty());
}

TEST(EncoderRules, OverlayOfQ1SHoldsTheLargest) {
  std::vector<float> values = weights(4, 128, 3);
  for (float& v : values)
    v = std::clamp(v, -1.0f, 1.0f);
  values[5] = 30;
  values[200] = -20;
  values[511] = 10;
  const std::vector<uint8_t> payload = must_encode(CodecId::kQ1S, values, 4, 128, {.kept_outliers = 0.006});
  const std::vector<float> back = decode(codec_info(CodecId::kQ1S), payload, 4, 128);
  EXPECT_EQ(payload.size(), 4u * 24 + 4 + 3 * 6);
  EXPECT_EQ(back[5], 30);
  EXPECT_EQ(back[200], -20);
  EXPECT_EQ(back[511], 10);
}

TEST(EncoderRules, TernaryGroupsComeOutAsTheyAre) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 3) - 1) * (i < 32 ? 0.25f : 0x1p-20f);
  EXPECT_EQ(decode(codec_info(CodecId::kQ1T), must_encode(CodecId::kQ1T, values, 2, 32), 2, 32), values);
}

TEST(EncoderRules, ShapesThatACodecCannotHoldAreRefused) {
  EXPECT_FALSE(check_encodable(codec_info(CodecId::kQ4TP), 4, 33).ok());
  EXPECT_FALSE(check_encodable(codec_info(CodecId::kQ1G), 4, 32).ok());
  EXPECT_TRUE(check_encodable(codec_info(CodecId::kQ82F), 4, 33).ok());
}

} // namespace
} // namespace cortiq::formats
