// Shaders on cooperative matrices leave the compiler as modules of the extension that all vendors share.

#include <map>

#include <gtest/gtest.h>

#include "codegen/spirv/cooperative.h"
#include "codegen/spirv/specialise.h"
#include "formats/artifact/shader_abi.h"

namespace cortiq::codegen {
namespace {

std::map<uint32_t, uint32_t> opcodes(const std::vector<uint32_t>& words) {
  std::map<uint32_t, uint32_t> counts;
  for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
    ++counts[words[at] & 0xffff];
  return counts;
}

TEST(Cooperative, ModulesAreOfTheSharedExtension) {
  for (const char* codec : {"q4_0", "q8_0", "q4_k", "q6_k", "iq2_xxs"}) {
    const auto made =
        specialise_shader(std::string("matmul_cm_i8_") + codec, std::vector<SpecValue>{{formats::kSpecLocal, 256},
                                                                                       {formats::kSpecRows, 512},
                                                                                       {formats::kSpecCols, 1024},
                                                                                       {formats::kSpecTokens, 64},
                                                                                       {formats::kSpecTeamRows, 16}});
    ASSERT_TRUE(made.ok()) << made.status().message();
    auto counts = opcodes(*made);
    EXPECT_EQ(counts[4456], 4u) << "types of matrices: two factors, a sum and scales";
    EXPECT_GT(counts[4457], 0u) << "loads";
    EXPECT_GT(counts[4459], 0u) << "products";
    for (uint32_t op = 5358; op <= 5362; ++op)
      EXPECT_EQ(counts[op], 0u) << "of the vendor's extension";
  }
}

TEST(Cooperative, SoAreProductsOfHalves) {
  for (const char* codec : {"q4_0", "q6_k", "iq2_xxs", "vbit"}) {
    const auto made = specialise_shader(std::string("matmul_cm_half_") + codec,
                                        std::vector<SpecValue>{{formats::kSpecLocal, 128},
                                                               {formats::kSpecRows, 512},
                                                               {formats::kSpecCols, 1024},
                                                               {formats::kSpecTokens, 128},
                                                               {formats::kSpecTeamRows, 16},
                                                               {formats::kSpecAhead, 2},
                                                               {formats::kSpecSubRows, 32},
                                                               {formats::kSpecSubTokens, 64}});
    ASSERT_TRUE(made.ok()) << made.status().message();
    auto counts = opcodes(*made);
    EXPECT_EQ(counts[4456], 3u) << "types of matrices: two factors and a sum";
    EXPECT_EQ(counts[4459], 4u * 2 * 8) << "products: of 64 columns, 32 rows and 64 tokens";
  }
}

TEST(Cooperative, SoIsAttention) {
  const auto made = specialise_shader("attention_cm", std::vector<SpecValue>{{formats::kSpecLocal, 256},
                                                                             {formats::kSpecHeads, 24},
                                                                             {formats::kSpecKvHeads, 8},
                                                                             {formats::kSpecHeadDim, 128},
                                                                             {formats::kSpecValueDim, 128},
                                                                             {formats::kSpecCache, 1, true}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto counts = opcodes(*made);
  EXPECT_EQ(counts[4456], 3u) << "types of matrices: two factors and a sum";
  EXPECT_EQ(counts[4459], 8u * 2 + 2 * 8) << "products: of 128 columns and 16 positions, of 32 positions and 64 values";
}

TEST(Cooperative, OtherModulesStayAsTheyAre) {
  const auto made = specialise_shader("finish", std::vector<SpecValue>{{formats::kSpecLocal, 64}});
  ASSERT_TRUE(made.ok());
  const auto again = to_khr_cooperative(*made);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *made);
}

} // namespace
} // namespace cortiq::codegen
