// Every supported codec's reference decode against the golden vectors. Weights match bit for bit; NaN counts by
// NaN-ness, and the sign of zero only in cases where all readers that the manifest lists agree on it.

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
  const StatusOr<uint64_t> size = codec.payload_bytes(codec, rows, cols);
  ASSERT_TRUE(size.ok()) << size.status().message();
  ASSERT_EQ(*size, payload.size());
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
    // Dialect cases pin one project's reading of bytes that others read differently.
    if (test.contains("dialect") || test.value("payload_validation", "") == "reject")
      continue;
    const std::string scheme = test["scheme"];
    const Codec* codec = find_cli_codec(test["family"].get<std::string>() + ":" + scheme);
    if (!codec)
      continue;
    SCOPED_TRACE(test["name"].get<std::string>());
    const int code = test["family"] == "cmf" ? codec->cmf_code : codec->gguf_code;
    EXPECT_EQ(code, test["code"].get<int>());
    expect_decodes(golden, test, *codec);
    seen.insert(codec->id);
  }
  for (const Codec& codec : codec_table())
    EXPECT_TRUE(seen.contains(codec.id)) << "no golden case for " << codec.name;
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
