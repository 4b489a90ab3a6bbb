// Templates and what is made of them are valid SPIR-V.

#include "codegen/spirv/specialise.h"

#include <gtest/gtest.h>
#include <spirv-tools/libspirv.hpp>

#include "formats/artifact/shader_abi.h"
#include "shaders/template_table.h"

namespace cortiq::codegen {
namespace {

testing::AssertionResult valid(std::span<const uint32_t> words) {
  std::string text;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t&, const char* message) { text = message; });
  if (tools.Validate(words.data(), words.size()))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << text;
}

TEST(Specialise, EveryTemplateIsValidBeforeAndAfter) {
  for (const shaders::Template& shader : shaders::template_table()) {
    EXPECT_TRUE(valid(shader.words())) << shader.name;
    if (shader.name.starts_with("matmul_") && !shader.name.ends_with("_q4_k") && !shader.name.ends_with("_iq2_s"))
      continue; // the finish of products is the same for all codecs
    const StatusOr<std::vector<uint32_t>> module = specialise_shader(shader.name, std::vector<SpecValue>{{0, 128}});
    ASSERT_TRUE(module.ok()) << shader.name << ": " << module.status().message();
    if (shader.name.starts_with("matmul_cm_") || shader.name == "attention_cm")
      continue; // it is of an extension now that validators of this age do not know
    EXPECT_TRUE(valid(*module)) << shader.name;
  }
}

TEST(Specialise, GivesTheSameWordsForTheSameConstants) {
  const std::vector<SpecValue> some = {{0, 64}, {1, 100}, {2, 2048}, {4, 4}}, others = {{0, 64}, {1, 100}, {2, 4096}};
  EXPECT_EQ(*specialise_shader("matmul_q4_k", some), *specialise_shader("matmul_q4_k", some));
  EXPECT_NE(*specialise_shader("matmul_q4_k", some), *specialise_shader("matmul_q4_k", others));
}

TEST(Specialise, LeavesOpenWhatIsToStayOpen) {
  const auto spec_ids = [](std::span<const uint32_t> words) {
    std::vector<uint32_t> out;
    for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
      if ((words[at] & 0xffff) == 71 && words[at + 2] == 1) // OpDecorate with SpecId
        out.push_back(words[at + 3]);
    return out;
  };
  const auto closed = *specialise_shader("rope_kv", std::vector<SpecValue>{{formats::kSpecCache, 1}});
  const auto open = *specialise_shader("rope_kv", std::vector<SpecValue>{{formats::kSpecCache, 1, true}});
  EXPECT_TRUE(spec_ids(closed).empty());
  EXPECT_EQ(spec_ids(open), std::vector<uint32_t>{formats::kSpecCache});
  EXPECT_TRUE(valid(open));
}

TEST(Specialise, AsksForExchangesInSubgroupsOnlyWhereThereAreSome) {
  const auto asks = [](std::span<const uint32_t> words) {
    for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
      if ((words[at] & 0xffff) == 17 && words[at + 1] == 65) // OpCapability GroupNonUniformShuffle
        return true;
    return false;
  };
  for (const bool plain : {false, true})
    for (const auto& [name, exchanges] : {std::pair("matmul_q4_k", false), std::pair("rms_norm", true),
                                          std::pair("attention_anchored", true), std::pair("add", false)}) {
      const auto words = *specialise_shader(name, std::vector<SpecValue>{{formats::kSpecSubgroups, plain ? 0u : 1u}});
      EXPECT_EQ(asks(words), exchanges && !plain) << name;
      EXPECT_EQ(exchanges_in_subgroups(words), exchanges && !plain) << name;
      EXPECT_TRUE(valid(words)) << name;
    }
}

TEST(Specialise, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(specialise_shader("matmul_q9_z", {}).ok());
  EXPECT_FALSE(has_shader_template("matmul_q9_z"));
  EXPECT_FALSE(specialise_shader("argmax", std::vector<SpecValue>{{200, 1}}).ok());
}

} // namespace
} // namespace cortiq::codegen
