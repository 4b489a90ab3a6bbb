#include "formats/cmf/cmf_masks.h"

#include <gmock/gmock.h>

#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CmfArch sample_arch() {
  return *parse_cmf_arch(minimal_header()["arch"]);
}

std::string refusal(const std::vector<uint8_t>& section, const CmfArch& arch) {
  return parse_cmf_masks(section, arch).status().message();
}

TEST(CmfMasks, CutsABlobIntoItsAreas) {
  const std::vector<uint8_t> section = sample_masks();
  const StatusOr<CmfMasks> masks = parse_cmf_masks(section, sample_arch());
  ASSERT_TRUE(masks.ok()) << masks.status().message();
  ASSERT_EQ(masks->masks.size(), 1u);
  const CmfMask& mask = masks->masks[0];
  EXPECT_EQ(masks->default_task, "t");
  EXPECT_EQ(mask.priority, CmfMaskPriority::kFallback);
  EXPECT_EQ(mask.ffn_rows, 1u);
  EXPECT_EQ(mask.ffn.size(), 16u);
  EXPECT_EQ(mask.heads.size(), 1u);
  EXPECT_EQ(mask.gates.size(), 1u);
  EXPECT_TRUE(mask.experts.empty());
  EXPECT_EQ(mask.gates.data(), section.data() + section.size() - 1);
}

TEST(CmfMasks, RefusesDamage) {
  const CmfArch arch = sample_arch();
  std::vector<uint8_t> section = sample_masks();
  EXPECT_THAT(refusal({1, 0, 0}, arch), HasSubstr("8-byte head"));
  section[0] = 7;
  EXPECT_THAT(refusal(section, arch), HasSubstr("count of 7 disagrees"));
  section = sample_masks();
  section[7] = 1;
  EXPECT_THAT(refusal(section, arch), HasSubstr("ends past its end"));
  section = sample_masks();
  section.pop_back();
  EXPECT_THAT(refusal(section, arch), HasSubstr("past the"));
  section = sample_masks();
  section[8] = '[';
  EXPECT_THAT(refusal(section, arch), HasSubstr("not valid JSON"));
}

TEST(CmfMasks, LengthFollowsTheModel) {
  CmfArch arch = sample_arch();
  arch.intermediate_size = 136;
  EXPECT_THAT(refusal(sample_masks(), arch), HasSubstr("blob_len is 18, but the sizes in arch ask for 19"));
  // Products of the largest numbers that a header may hold stay absent instead of wrapping.
  arch.intermediate_size = arch.num_layers = arch.num_loops = arch.num_attention_heads = uint32_t{1} << 31;
  EXPECT_THAT(refusal(sample_masks(), arch), HasSubstr("blob_len is 18"));
}

TEST(CmfIndex, MustParse) {
  const std::vector<uint8_t> one = {1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 1, 0};
  const auto refused = [](std::span<const uint8_t> section) { return parse_cmf_index(section).status().message(); };
  const StatusOr<std::vector<CmfIndexEntry>> entries = parse_cmf_index(one);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ((*entries)[0].task_id, 1u);
  EXPECT_EQ((*entries)[0].layer, 0u);
  EXPECT_THAT((*entries)[0].groups, ElementsAre(5));
  EXPECT_THAT((*entries)[0].heads, ElementsAre(1));
  EXPECT_THAT(refused(std::span(one).first(20)), HasSubstr("ends past"));
  EXPECT_THAT(refused(std::span(one).first(26)), HasSubstr("ends past"));
  EXPECT_THAT(refused(std::span(one).first(7)), HasSubstr("8-byte head"));
  std::vector<uint8_t> many = one;
  many[0] = many[1] = many[2] = many[3] = 0xFF;
  EXPECT_THAT(refused(many), HasSubstr("entry 1"));
}

} // namespace
} // namespace cortiq::formats
