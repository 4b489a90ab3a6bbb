#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "formats/codec/codec.h"
#include "test/unit/codec/golden.h"

namespace cortiq::formats {
namespace {

struct SizeCase {
  std::string_view codec;
  uint64_t rows, cols, bytes;
};

TEST(PayloadSize, FollowsTheFormulas) {
  constexpr SizeCase kCases[] = {
      {"f32", 5, 77, 1540},       {"f16", 1, 7, 14},          {"bf16", 2, 3, 12},      {"u8", 1, 9, 9},
      {"u32", 1, 5, 20},          {"u64", 1, 5, 40},          {"f32", 0, 8, 0},        {"q8_row", 4, 10, 48},
      {"q8_2f", 4, 10, 68},       {"q4_block", 5, 50, 144},   {"q4_block", 1, 33, 36}, {"q4_tiled", 4, 64, 144},
      {"q4tp", 3, 96, 162},       {"q4_0", 2, 64, 72},        {"q4_1", 2, 64, 80},     {"q5_0", 2, 64, 88},
      {"q5_1", 2, 64, 96},        {"q8_0", 2, 64, 136},       {"q4_k", 2, 512, 576},   {"q5_k", 2, 512, 704},
      {"q6_k", 2, 512, 840},      {"iq4_nl", 2, 64, 72},      {"vbit", 2, 64, 58},     {"vbit_ro", 2, 64, 70},
      {"q1", 2, 64, 24},          {"q1s", 2, 64, 28},         {"q1t", 2, 64, 48},      {"q2tp", 3, 96, 90},
      {"q2tp_affine", 3, 96, 90}, {"blr", 16, 64, 272},       {"q1g", 2, 256, 72},     {"mxfp4", 2, 64, 68},
      {"q2_k", 2, 512, 336},      {"q3_k", 2, 512, 440},      {"q8_k", 2, 512, 1168},  {"iq4_xs", 2, 512, 544},
      {"iq2_xxs", 2, 512, 264},   {"iq2_xs", 2, 512, 296},    {"iq2_s", 2, 512, 328},  {"iq3_xxs", 2, 512, 392},
      {"iq3_s", 2, 512, 440},     {"iq1_s", 2, 512, 200},     {"iq1_m", 2, 512, 224},  {"tq1_0", 2, 512, 216},
      {"tq2_0", 2, 512, 264},     {"mxfp4_ggml", 2, 64, 68},  {"nvfp4", 2, 128, 144},  {"q1_0", 2, 256, 72},
      {"q2_0", 2, 128, 72},       {"q2_0_g128", 2, 256, 136}, {"stq1_0", 2, 512, 168}, {"g8_0", 2, 64, 64},
      {"ptq1_0", 2, 256, 112},    {"fv5", 2, 512, 416},       {"fv5b", 2, 512, 1040},  {"i2_s", 2, 256, 160},
      {"i8_s", 2, 64, 160},       {"blr_u", 4, 24, 20},       {"blr_v", 4, 24, 68},
  };
  for (const SizeCase& test : kCases) {
    SCOPED_TRACE(std::string(test.codec));
    const Codec* codec = find_codec(test.codec);
    ASSERT_NE(codec, nullptr);
    const StatusOr<uint64_t> size = codec->payload_bytes(*codec, test.rows, test.cols);
    ASSERT_TRUE(size.ok()) << size.status().message();
    EXPECT_EQ(*size, test.bytes);
  }
}

TEST(PayloadSize, RefusesRowsThatAreNotWholeBlocks) {
  for (const Codec& codec : codec_table()) {
    if (codec.block == 1 || codec.flat)
      continue;
    const StatusOr<uint64_t> size = codec.payload_bytes(codec, 32, codec.block + codec.block / 2);
    ASSERT_FALSE(size.ok()) << codec.name;
    EXPECT_EQ(size.status().code(), StatusCode::kInvalid);
    EXPECT_NE(size.status().message().find("whole blocks of " + std::to_string(codec.block)), std::string::npos);
  }
}

TEST(PayloadSize, RefusesEmptyQuantizedTensors) {
  for (const Codec& codec : codec_table())
    if (codec.form == DotForm::kAffineInt || codec.form == DotForm::kTable16) {
      EXPECT_FALSE(codec.payload_bytes(codec, 0, 256).ok()) << codec.name;
      EXPECT_FALSE(codec.payload_bytes(codec, 4, 0).ok()) << codec.name;
    }
}

TEST(PayloadSize, RefusesSizesBeyond64Bits) {
  for (const Codec& codec : codec_table()) {
    for (const auto& [rows, cols] :
         {std::array<uint64_t, 2>{uint64_t{1} << 40, uint64_t{1} << 40}, std::array<uint64_t, 2>{UINT64_MAX, 256},
          std::array<uint64_t, 2>{16, UINT64_MAX / 256 * 256},
          std::array<uint64_t, 2>{UINT64_MAX, UINT64_MAX / 256 * 256}}) {
      EXPECT_FALSE(codec.payload_bytes(codec, rows, cols).ok()) << codec.name << " accepts " << rows << " x " << cols;
    }
  }
}

std::vector<uint8_t> payload_of(const nlohmann::json& test) {
  std::vector<uint8_t> payload(test["nbytes"].get<size_t>());
  const std::string hex = test["payload"];
  for (size_t i = 0; hex != "zeros" && i < payload.size(); ++i)
    payload[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return payload;
}

TEST(PayloadSize, AgreesWithTheGoldenVerdicts) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  int judged = 0;
  for (const auto& test : golden.manifest["payload_validation"]) {
    const Codec* codec = find_cmf_codec(test["code"]);
    if (!codec)
      continue;
    const std::vector<uint64_t> shape = test["shape"];
    uint64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i)
      rows *= shape[i];
    const uint64_t cols = shape.back();
    // The shape rule of q4_tiled (whole tiles) is enforced here at once, by the reference only when it decodes.
    if (codec->id == CodecId::kQ4Tiled && cols % 32 != 0) {
      EXPECT_FALSE(codec->payload_bytes(*codec, rows, cols).ok());
      continue;
    }
    // The reference looks at overlays when it decodes; here a payload without its table is refused at once.
    if (codec->id == CodecId::kQ1S || codec->id == CodecId::kQ1T) {
      EXPECT_FALSE(check_payload(*codec, payload_of(test), rows, cols, false).ok());
      continue;
    }
    const bool shape_fits = !codec->needs_matrix || shape.size() == 2;
    const bool accept = shape_fits && check_payload(*codec, payload_of(test), rows, cols, true).ok();
    EXPECT_EQ(accept, test["accept"].get<bool>()) << test.dump();
    ++judged;
  }
  EXPECT_GT(judged, 70);
}

} // namespace
} // namespace cortiq::formats
