#include <gtest/gtest.h>

#include "tools/cortiq-bench/machine/machine.h"

namespace cortiq::bench {
namespace {

TEST(Units, EveryUsableUnitComputes) {
  const std::vector<const Unit*> units = usable_units();
  ASSERT_FALSE(units.empty());
  for (const Unit* unit : units) {
    unit->run(3);
    EXPECT_GT(measure_peak(*unit, 2), 0) << unit->name;
  }
}

TEST(Units, KernelsAreHeldAgainstTheUnitThatTheyUse) {
  Ceilings ceilings;
  EXPECT_EQ(ceilings.peak_of("gemv_f32_q8a_q4_0_r16_k3072_1x16_avx512vnni"), 0);
#if defined(__x86_64__)
  ceilings.peaks = {{&kAvx2F32, 1}, {&kAvx512F32, 2}, {&kAvx2Int8, 3}, {&kAvxVnniInt8, 4}, {&kAvx512VnniInt8, 5}};
  EXPECT_EQ(ceilings.peak_of("gemv_f32_q8a_q4_0_r16_k3072_1x16_avx512vnni"), 5);
  EXPECT_EQ(ceilings.peak_of("gemv_f32_f32_q4_0_r16_k3072_1x16_res_avx512vnni"), 2);
  EXPECT_EQ(ceilings.peak_of("gemm_f32_q8a_q4_0_r16_k3072_4x16_v3"), 3);
  EXPECT_EQ(ceilings.peak_of("gemv_f32_f32_q4_0_r16_k3072_1x16_avxvnni"), 1);
#endif
  EXPECT_EQ(ceilings.peak_of("attention"), 0);
}

} // namespace
} // namespace cortiq::bench
