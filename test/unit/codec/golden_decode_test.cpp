// Every codec's reference decode against the golden vectors. Weights match bit for bit; NaN counts by NaN-ness, and the
// sign of zero only in cases where all readers that the manifest lists agree on it.

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "formats/codec/codec.h"
#include "formats/codec/q4tp_ladder.h"
#include "test/unit/codec/golden.h"

namespace cortiq::formats {
namespace {

bool is_nan(uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u;
}

bool zero_sign_counts(const nlohmann::json& test) {
  for (const auto& check : test.value("cross_check", nlohmann::json::array()))
    if (check.value("signed_zero_differs", 0) != 0)
      return false;
  return true;
}

void expect_decodes(const Golden& golden, const nlohmann::json& test, const Codec& codec) {
  const uint64_t rows = test["rows"];
  const uint64_t cols = test["cols"];
  const std::vector<uint8_t> payload = golden.bytes(test["files"]["packed"]["file"]);
  const Status sound = check_payload(codec, payload, rows, cols, /*strict=*/false);
  ASSERT_TRUE(sound.ok()) << sound.message();
  if (!test["files"].contains("f32")) {
    EXPECT_EQ(codec.decode_row, nullptr);
    return;
  }
  const std::vector<uint32_t> want = golden.words<uint32_t>(test["files"]["f32"]["file"]);
  ASSERT_EQ(want.size(), rows * cols);
  ASSERT_NE(codec.decode_row, nullptr);
  std::vector<float> out(cols);
  const bool signs = zero_sign_counts(test);
  for (uint64_t r = 0; r < rows; ++r) {
    codec.decode_row(payload.data(), rows, cols, r, out.data());
    for (uint64_t c = 0; c < cols; ++c) {
      const uint32_t a = std::bit_cast<uint32_t>(out[c]);
      const uint32_t b = want[r * cols + c];
      if ((is_nan(a) && is_nan(b)) || (!signs && (a | b) == 0x80000000u))
        continue;
      ASSERT_EQ(a, b) << "weight [" << r << ", " << c << "]";
    }
  }
}

TEST(GoldenDecode, EveryCaseOfEverySupportedCodec) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  std::set<CodecId> seen;
  for (const auto& test : golden.manifest["cases"]) {
    if (test.value("payload_validation", "") == "reject")
      continue;
    const std::string scheme = test["scheme"];
    const Codec* codec = find_cli_codec(test["family"].get<std::string>() + ":" + scheme);
    if (!codec) {
      // Readings of one project, of bytes that all others read differently.
      EXPECT_TRUE(scheme == "MXFP4_pairs" || scheme == "NVFP4_b16") << scheme;
      continue;
    }
    SCOPED_TRACE(test["name"].get<std::string>());
    const int code = test["family"] == "cmf" ? codec->cmf_code : codec->gguf_code;
    // Blocks of 128 stand under upstream's id as well as under one of their own.
    if (scheme != "Q2_0_g128")
      EXPECT_EQ(code, test["code"].get<int>());
    expect_decodes(golden, test, *codec);
    seen.insert(codec->id);
  }
  // The affine reading of a q2tp payload has no vectors of its own; it is held against q2tp below. What no file holds,
  // the factors of blr, is held against blr.
  for (const Codec& codec : codec_table())
    EXPECT_TRUE(seen.contains(codec.id) || codec.id == CodecId::kQ2TPAffine ||
                (codec.cmf_name.empty() && codec.gguf_name.empty()))
        << "no golden case for " << codec.name;
}

TEST(GoldenDecode, AffineQ2tpIsHalfARungHigher) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  const Codec& plain = codec_info(CodecId::kQ2TP);
  const Codec& affine = codec_info(CodecId::kQ2TPAffine);
  int cases = 0;
  for (const auto& test : golden.manifest["cases"]) {
    if (test["scheme"] != "q2tp" || test["case"] == "edge")
      continue;
    const uint64_t rows = test["rows"];
    const uint64_t cols = test["cols"];
    const std::vector<uint8_t> payload = golden.bytes(test["files"]["packed"]["file"]);
    std::vector<float> low(cols), high(cols);
    for (uint64_t r = 0; r < rows; ++r) {
      plain.decode_row(payload.data(), rows, cols, r, low.data());
      affine.decode_row(payload.data(), rows, cols, r, high.data());
      for (uint64_t i = 0; i < cols; ++i) {
        // Levels -1, 0, 1, 2 times a rung here are -1.5, -0.5, 0.5, 1.5 times it there.
        const int code = payload[(r * cols + i) / 4] >> (i % 4 * 2) & 3;
        if (code == 1)
          ASSERT_EQ(high[i], 0.0f) << "weight [" << r << ", " << i << "]";
        else
          ASSERT_EQ(low[i], (static_cast<float>(code) - 1.5f) * (high[i] / static_cast<float>(code - 1)))
              << "weight [" << r << ", " << i << "]";
      }
    }
    ++cases;
  }
  EXPECT_GT(cases, 4);
}

TEST(GoldenDecode, Exp2OfEveryHalf) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  const std::vector<uint32_t> want = golden.words<uint32_t>(golden.manifest["exp2_of_f16"]["files"]["y"]["file"]);
  ASSERT_EQ(want.size(), 65536u);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint32_t got = std::bit_cast<uint32_t>(q4tp_exp2(static_cast<uint16_t>(bits)));
    if (is_nan(got) && is_nan(want[bits]))
      continue;
    ASSERT_EQ(got, want[bits]) << "exp2 of half " << bits;
  }
}

} // namespace
} // namespace cortiq::formats
