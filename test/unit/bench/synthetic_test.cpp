#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cmf/cmf_file.h"
#include "formats/gguf/gguf_file.h"
#include "test/unit/runtime/temporary_folder.h"
#include "tools/cortiq-bench/synthetic/low_rank.h"
#include "tools/cortiq-bench/synthetic/model_file.h"

namespace cortiq::bench {
namespace {

using ::testing::HasSubstr;

TEST(Synthetic, NamedShapesTakeSizesAndCodecs) {
  const auto spec = parse_synthetic("30B-A3B,layers=12,vocab=32768:Q4_K,attention=q8_0");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->shape.layers, 12u);
  EXPECT_EQ(spec->shape.experts, 128u);
  EXPECT_EQ(spec->codec->name, "q4_k");
  EXPECT_EQ(spec->attention->name, "q8_0");
  EXPECT_EQ(spec->head->name, "q6_k");
  EXPECT_FALSE(spec->cmf);
}

TEST(Synthetic, SizesAloneHaveDefaults) {
  const auto spec = parse_synthetic("layers=2,hidden=512,ffn=1024,heads=8,vocab=100:cmf:q8_row");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->shape.kv_heads, 8u);
  EXPECT_EQ(spec->shape.head_dim, 64u);
  EXPECT_TRUE(spec->cmf);
}

TEST(Synthetic, WhatCannotBeIsRefusedByName) {
  for (const auto& [text, word] : {std::pair{"3b", "SHAPE:CODEC"},
                                   {"4b:q4_0", "'4b'"},
                                   {"3b,layers=99999:q4_0", "4096"},
                                   {"3b,layers=2x:q4_0", "'2x'"},
                                   {"3b:", "''"},
                                   {"tiny,heads=5:q4_0", "5 heads"},
                                   {"tiny,head-dim=63:q4_0", "63"},
                                   {"tiny:q4_0,head=q4tp", "GGUF"},
                                   {"tiny,hidden=264:q4_k", "token_embd"}}) {
    const auto spec = parse_synthetic(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.status().message(), HasSubstr(word));
  }
}

TEST(Synthetic, LowRankMatricesHaveAboutOneBitAWeight) {
  constexpr uint64_t kRows = 1024, kCols = 3072;
  const auto bytes = low_rank_bytes(kRows, kCols);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_LE(*bytes, kRows * kCols / 8 + 16);
  EXPECT_GE(*bytes, kRows * kCols / 8 * 97 / 100);
  const std::vector<uint8_t> payload = low_rank_payload(kRows, kCols, 1);
  EXPECT_EQ(payload.size(), *bytes);
  const formats::Codec& codec = formats::codec_info(formats::CodecId::kBLR);
  EXPECT_TRUE(formats::check_payload(codec, payload, kRows, kCols, true).ok());
  EXPECT_FALSE(low_rank_bytes(4, kCols).ok());
}

TEST(Synthetic, FilesAreReadBackWithTheSameTensors) {
  const test::TemporaryFolder folder;
  for (const char* text :
       {"tiny:q4_0", "tiny-moe:q6_k", "tiny:cmf:q4tp", "tiny-moe:cmf:q4_tiled", "tiny:vbit", "tiny:blr"})
    for (const Payloads payloads : {Payloads::kAbsent, Payloads::kRandom}) {
      const auto spec = parse_synthetic(text);
      ASSERT_TRUE(spec.ok()) << spec.status().message();
      const std::string path = folder.path() + "/model." + model_extension(*spec);
      ASSERT_TRUE(write_model(*spec, payloads, path).ok()) << text;
      const size_t want = synthetic_tensors(*spec).size();
      if (spec->cmf) {
        const auto file = formats::CmfFile::open(path);
        ASSERT_TRUE(file.ok()) << text << ": " << file.status().message();
        EXPECT_EQ(file->tensors().size(), want) << text;
      } else {
        const auto file = formats::GgufFile::open(path);
        ASSERT_TRUE(file.ok()) << text << ": " << file.status().message();
        EXPECT_EQ(file->tensors().size(), want) << text;
      }
    }
}

} // namespace
} // namespace cortiq::bench
