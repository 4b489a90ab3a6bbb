#include "formats/codec/codec.h"

#include <string>

#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

// Codecs whose code an earlier one has: the containers' readers tell them apart by what else the file says.
bool shares_its_code(const Codec& codec) {
  return codec.id == CodecId::kQ2TPAffine || codec.id == CodecId::kSTQ1_0 || codec.id == CodecId::kPTQ1_0;
}

TEST(CodecTable, IsOrderedByIdAndEveryRowFindsItself) {
  int previous = -1;
  for (const Codec& codec : codec_table()) {
    SCOPED_TRACE(std::string(codec.name));
    EXPECT_LT(previous, static_cast<int>(codec.id));
    previous = static_cast<int>(codec.id);
    EXPECT_EQ(&codec_info(codec.id), &codec);
    EXPECT_EQ(find_codec(codec.name), &codec);
    EXPECT_EQ(find_cli_codec(codec.name), &codec);
    EXPECT_EQ(codec.cmf_name.empty(), codec.cmf_code < 0);
    EXPECT_EQ(codec.gguf_name.empty(), codec.gguf_code < 0);
    if (codec.cmf_code >= 0) {
      if (!shares_its_code(codec))
        EXPECT_EQ(find_cmf_codec(codec.cmf_code), &codec);
      EXPECT_EQ(find_cli_codec("cmf:" + std::string(codec.cmf_name)), &codec);
    }
    if (codec.gguf_code >= 0) {
      if (!shares_its_code(codec))
        EXPECT_EQ(find_gguf_codec(static_cast<uint32_t>(codec.gguf_code)), &codec);
      EXPECT_EQ(find_cli_codec("gguf:" + std::string(codec.gguf_name)), &codec);
    }
    EXPECT_EQ(codec.decode_row == nullptr, codec.form == DotForm::kNone);
    EXPECT_NE(codec.payload_bytes, nullptr);
    EXPECT_GT(codec.block, 0u);
  }
}

TEST(CodecTable, HasACompleteRowForEachEnumerator) {
  const CodecId all[] = {
      CodecId::kF32,    CodecId::kF16,   CodecId::kBF16,       CodecId::kU8,         CodecId::kU32,
      CodecId::kU64,    CodecId::kQ8Row, CodecId::kQ82F,       CodecId::kQ4Block,    CodecId::kQ4Tiled,
      CodecId::kQ4TP,   CodecId::kVBit,  CodecId::kVBitRO,     CodecId::kQ1,         CodecId::kQ1S,
      CodecId::kQ1T,    CodecId::kQ2TP,  CodecId::kQ2TPAffine, CodecId::kBLR,        CodecId::kQ1G,
      CodecId::kMXFP4,  CodecId::kQ4_0,  CodecId::kQ4_1,       CodecId::kQ5_0,       CodecId::kQ5_1,
      CodecId::kQ8_0,   CodecId::kQ4_K,  CodecId::kQ5_K,       CodecId::kQ6_K,       CodecId::kIQ4_NL,
      CodecId::kQ2_K,   CodecId::kQ3_K,  CodecId::kQ8_K,       CodecId::kIQ4_XS,     CodecId::kIQ2_XXS,
      CodecId::kIQ2_XS, CodecId::kIQ2_S, CodecId::kIQ3_XXS,    CodecId::kIQ3_S,      CodecId::kIQ1_S,
      CodecId::kIQ1_M,  CodecId::kTQ1_0, CodecId::kTQ2_0,      CodecId::kMXFP4_GGML, CodecId::kNVFP4,
      CodecId::kQ1_0,   CodecId::kQ2_0,  CodecId::kQ2_0_G128,  CodecId::kSTQ1_0,     CodecId::kG8_0,
      CodecId::kPTQ1_0, CodecId::kFV5,   CodecId::kFV5B,       CodecId::kI2_S,       CodecId::kI8_S,
      CodecId::kBLRU,   CodecId::kBLRV};
  EXPECT_EQ(codec_table().size(), std::size(all));
  for (const CodecId id : all)
    EXPECT_EQ(codec_info(id).id, id);
}

TEST(CodecTable, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(find_codec(""), nullptr);
  EXPECT_EQ(find_codec("Q4_K"), nullptr);
  EXPECT_EQ(find_cli_codec("cmf:Q4_K"), nullptr);
  EXPECT_EQ(find_cli_codec("gguf:q4tp"), nullptr);
  EXPECT_EQ(find_cli_codec("gguf:"), nullptr);
  EXPECT_EQ(find_cli_codec("ggml:Q4_K"), nullptr);
  EXPECT_EQ(find_cmf_codec(-1), nullptr);
  EXPECT_EQ(find_cmf_codec(5), nullptr);
  EXPECT_EQ(find_gguf_codec(UINT32_MAX), nullptr);
  EXPECT_EQ(find_gguf_codec(9), nullptr);
}

TEST(CodecTable, TellsNamesAndCodesApartThatTwoCodecsHave) {
  EXPECT_EQ(find_cli_codec("cmf:mxfp4"), &codec_info(CodecId::kMXFP4));
  EXPECT_EQ(find_cli_codec("gguf:MXFP4"), &codec_info(CodecId::kMXFP4_GGML));
  EXPECT_EQ(find_cli_codec("mxfp4_ggml"), &codec_info(CodecId::kMXFP4_GGML));
  EXPECT_EQ(find_cli_codec("gguf:PQ2_0"), &codec_info(CodecId::kQ2_0_G128));
  EXPECT_EQ(find_cli_codec("gguf:Q2_0_g128"), &codec_info(CodecId::kQ2_0_G128));
  EXPECT_EQ(find_gguf_scheme("q4tp"), nullptr);
  EXPECT_EQ(find_cmf_codec(16), &codec_info(CodecId::kQ2TP));
  EXPECT_EQ(find_gguf_codec(42), &codec_info(CodecId::kQ2_0));
  EXPECT_EQ(find_gguf_codec(143), &codec_info(CodecId::kG8_0));
}

TEST(CodecTable, TakesGgufSchemesInEitherCase) {
  EXPECT_EQ(find_cli_codec("gguf:q4_k"), find_codec("q4_k"));
}

} // namespace
} // namespace cortiq::formats
