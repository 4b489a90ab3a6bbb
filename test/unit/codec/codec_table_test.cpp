#include "formats/codec/codec.h"

#include <string>

#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

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
      EXPECT_EQ(find_cmf_codec(codec.cmf_code), &codec);
      EXPECT_EQ(find_cli_codec("cmf:" + std::string(codec.cmf_name)), &codec);
    }
    if (codec.gguf_code >= 0) {
      EXPECT_EQ(find_gguf_codec(static_cast<uint32_t>(codec.gguf_code)), &codec);
      EXPECT_EQ(find_cli_codec("gguf:" + std::string(codec.gguf_name)), &codec);
    }
    EXPECT_EQ(codec.decode_row == nullptr, codec.form == DotForm::kNone);
    EXPECT_NE(codec.payload_bytes, nullptr);
    EXPECT_GT(codec.block, 0u);
  }
}

TEST(CodecTable, HasACompleteRowForEachEnumerator) {
  const CodecId all[] = {CodecId::kF32,  CodecId::kF16,   CodecId::kBF16, CodecId::kU8,      CodecId::kU32,
                         CodecId::kU64,  CodecId::kQ8Row, CodecId::kQ82F, CodecId::kQ4Block, CodecId::kQ4Tiled,
                         CodecId::kQ4TP, CodecId::kQ4_0,  CodecId::kQ4_1, CodecId::kQ5_0,    CodecId::kQ5_1,
                         CodecId::kQ8_0, CodecId::kQ4_K,  CodecId::kQ5_K, CodecId::kQ6_K,    CodecId::kIQ4_NL};
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

TEST(CodecTable, TakesGgufSchemesInEitherCase) {
  EXPECT_EQ(find_cli_codec("gguf:q4_k"), find_codec("q4_k"));
}

} // namespace
} // namespace cortiq::formats
