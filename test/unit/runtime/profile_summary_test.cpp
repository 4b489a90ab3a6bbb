#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/session/profile.h"

namespace cortiq::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Profile::Row row(std::string name, double seconds, double bytes) {
  return {.name = std::move(name), .rows = 16, .cols = 64, .calls = 2, .seconds = seconds, .bytes = bytes};
}

TEST(ProfileSummary, AddsProductsByCodecAndTheRestByName) {
  Profile profile;
  profile.steps = 3;
  profile.step = 10;
  profile.work = 9;
  profile.rows = {row("gemv_f32_q8a_q8_row_r16_k64_1x16_avx512vnni", 2, 3e9), row("norm", 1, 0),
                  row("gemm_f32_q8a_q8_row_r16_k256_4x16_res_avx512vnni", 3, 1e9),
                  row("gemv_f32_f32_f16_verbatim_k64_1x16_v3", 0.5, 1e9), row("norm", 1, 0)};
  const std::vector<Profile::Row> kinds = sum_kinds(profile);
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].name, "products, q8_row");
  EXPECT_EQ(kinds[0].calls, 4u);
  EXPECT_DOUBLE_EQ(kinds[0].seconds, 5);
  EXPECT_DOUBLE_EQ(kinds[0].gbps(), 0.8);
  EXPECT_EQ(kinds[1].name, "norm");
  EXPECT_EQ(kinds[2].name, "products, f16");
  EXPECT_THAT(
      summarize(profile),
      ElementsAre(HasSubstr("3 steps"),
                  AllOf(HasSubstr("q8_row"), HasSubstr("50.0 %"), HasSubstr("4000.0 MB"), HasSubstr("0.80 GB/s")),
                  AllOf(HasSubstr("norm"), HasSubstr("2000.0 ms"), ::testing::Not(HasSubstr("GB/s"))), HasSubstr("f16"),
                  AllOf(HasSubstr("of it waiting"), HasSubstr("10.0 %"))));
  EXPECT_TRUE(summarize(Profile()).empty());
}

} // namespace
} // namespace cortiq::runtime
