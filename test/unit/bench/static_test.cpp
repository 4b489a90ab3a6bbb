#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/cortiq-bench/static/kernel_cost.h"
#include "tools/cortiq-bench/static/mca.h"

namespace cortiq::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One token, 16 rows of 64 weights: two iterations of two instructions and three rounds of one, then one more loop.
constexpr char kGemv[] = R"(gemv_f32_q8a_q8_0_r16_k64_1x16_bias_dotprod:
     0: fd7bbfa9              	stp	x29, x30, [sp, #-0x10]!
; loop 0: to args[56], step 1
     4: fd030091              	mov	x29, sp
; loop 1: 2 times, step 32
     8: e803bf6d              	ldp	q7, q16, [x6, #0x20]
; loop 2: 3 times, step 1
     c: 010840f9              	sdot	v24.4s, v17.16b, v23.4b[0]
; end of loop 2
    10: 010840f9              	b.lt	0x8
; end of loop 1
    14: 010840f9              	st1	{ v0.4s }, [x3]
; end of loop 0
    18: c0035fd6              	ret
    40: constants 0f0f0f0f
)";

std::vector<ListedKernel> listed(std::string_view text) {
  const auto kernels = parse_listing(text);
  EXPECT_TRUE(kernels.ok()) << kernels.status().message();
  return kernels.ok() ? *kernels : std::vector<ListedKernel>();
}

TEST(Listing, ReadsNameInstructionsAndLoops) {
  const auto kernels = listed(kGemv);
  ASSERT_EQ(kernels.size(), 1u);
  const ListedKernel& kernel = kernels[0];
  EXPECT_EQ(kernel.codec->name, "q8_0");
  EXPECT_EQ(kernel.layout, formats::LayoutId::kR16);
  EXPECT_EQ(kernel.columns, 64u);
  EXPECT_EQ(kernel.tokens, 1u);
  EXPECT_EQ(kernel.rows, 16u);
  EXPECT_EQ(kernel.set, "dotprod");
  EXPECT_EQ(kernel.instructions.size(), 7u);
  EXPECT_EQ(kernel.instructions[2], "ldp q7, q16, [x6, #0x20]");
  ASSERT_EQ(kernel.loops.size(), 3u);
  EXPECT_EQ(kernel.loops[0].limit, LoopLimit::kGroups);
  EXPECT_EQ(kernel.loops[1].limit, LoopLimit::kIterations);
  EXPECT_EQ(kernel.loops[1].iterations, 2u);
  EXPECT_EQ(kernel.loops[1].step, 32u);
  EXPECT_EQ(kernel.loops[2].parent, 1);
  EXPECT_EQ(kernel.loops[2].begin, 3u);
  EXPECT_EQ(kernel.loops[2].end, 4u);
  EXPECT_EQ(kernel.loops[1].end, 5u);
}

TEST(Listing, RefusesWhatIsNone) {
  for (const char* text :
       {"     0: fd7bbfa9 \tret\n", "a:\nnonsense\n", "a:\n; loop 1: step 1\n", "a:\n; loop 0: 3 step 1\n",
        "a:\n; loop 0: to args[x], step 1\n", "a:\n; loop 0: step 0\n", "a:\n; end of loop 0\n"})
    EXPECT_FALSE(parse_listing(text).ok()) << text;
  EXPECT_TRUE(listed("other_kernel:\n     0: c0035fd6 \tret\n").empty());
}

TEST(KernelCost, CountsLoopsByTheirIterations) {
  const KernelCost cost = count_kernel(listed(kGemv).at(0));
  // 16 rows of 64 weights are 32 times 32 weights.
  EXPECT_DOUBLE_EQ(cost.products, 32);
  EXPECT_DOUBLE_EQ(cost.instructions, 2 * (1 + 3 + 1) / 32.0);
  EXPECT_DOUBLE_EQ(cost.loads, 2 / 32.0);
  EXPECT_DOUBLE_EQ(cost.all, (2 + 2 * (1 + 3 + 1)) / 32.0);
  ASSERT_EQ(cost.strands.size(), 1u);
  EXPECT_EQ(cost.strands[0].iterations, 2);
  EXPECT_EQ(cost.strands[0].body.size(), 5u);
}

TEST(KernelCost, ManyTokensComeWithFourGroupsAndLoopsOverThem) {
  const KernelCost cost = count_kernel(listed("gemm_f32_q8a_q4_0_r16_k32_256x16_i8mm:\n"
                                              "; loop 0: 9 times, step 1\n" // what a call does once
                                              "   0: 00 \tprfm pldl1keep, [x0]\n"
                                              "; end of loop 0\n"
                                              "; loop 1: to args[56], step 1\n"
                                              "   4: 00 \tldr q0, [x1]\n"
                                              "; loop 2: 2 times, step 16\n"
                                              "   8: 00 \tldr q0, [x1]\n"
                                              "; end of loop 2\n"
                                              "; end of loop 1\n"
                                              "; loop 3: step 1\n" // fills in
                                              "   c: 00 \tstr q0, [x1]\n"
                                              "; end of loop 3\n"
                                              "; loop 4: 2 times, step 16\n"
                                              "  10: 00 \tadd x1, x1, #4\n"
                                              "; loop 5: to args[104], step 4\n"
                                              "  14: 00 \tsmmla v0.4s, v1.16b, v2.16b\n"
                                              "  18: 00 \tsmmla v0.4s, v1.16b, v2.16b\n"
                                              "; end of loop 5\n"
                                              "; end of loop 4\n")
                                           .at(0));
  EXPECT_DOUBLE_EQ(cost.products, 4 * 16 * 256);
  EXPECT_DOUBLE_EQ(cost.instructions * cost.products, 4 * 2 + 2 * 64 * 2);
  EXPECT_DOUBLE_EQ(cost.loads * cost.products, 4 * 2);
  EXPECT_DOUBLE_EQ(cost.all * cost.products, 4 * (1 + 2) + 2 * (1 + 64 * 2));
  ASSERT_EQ(cost.strands.size(), 2u);
  EXPECT_EQ(cost.strands[1].iterations, 2 * 64);
}

TEST(KernelCost, AGroupWithoutLoopsIsOneStrand) {
  const KernelCost cost = count_kernel(listed("gemv_f32_q8a_q4_0_r16_k32_1x16_v3:\n"
                                              "; loop 0: to args[56], step 1\n"
                                              " 0: 00 \tvaddps ymm0, ymm1, ymmword ptr [rax]\n"
                                              "; end of loop 0\n")
                                           .at(0));
  ASSERT_EQ(cost.strands.size(), 1u);
  EXPECT_DOUBLE_EQ(cost.instructions, 1 / 16.0);
  EXPECT_DOUBLE_EQ(cost.loads, 1 / 16.0);
  EXPECT_TRUE(count_kernel(listed("gemv_f32_q8a_q4_0_r16_k32_1x16_v3:\n 0: 00 \tret\n").at(0)).strands.empty());
}

TEST(KernelCost, TellsWhatReadsMemory) {
  for (const char* text :
       {"ldr q3, 0x13c0", "ldp q7, q16, [x6, #0x20]", "ld1r { v1.4s }, [x2]", "vaddps ymm0, ymm1, ymmword ptr [rax]",
        "vmovups zmm1, zmmword ptr [rdi + 0x40]", "cmp qword ptr [rsp], rax"})
    EXPECT_TRUE(reads_memory(text)) << text;
  for (const char* text :
       {"sdot v24.4s, v17.16b, v23.4b[0]", "str q19, [x2]", "stp q1, q2, [x0]", "vmovups zmmword ptr [rdi], zmm1",
        "prefetcht0 byte ptr [rax]", "vpaddd ymm0, ymm1, ymm2", "lea rax, [rdi + 8]"})
    EXPECT_FALSE(reads_memory(text)) << text;
}

TEST(Mca, ProcessorsHaveWhatTheirSetNeeds) {
  ASSERT_EQ(processors_of("i8mm").size(), 2u);
  EXPECT_EQ(processors_of("i8mm")[0].name, "neoverse-v1");
  EXPECT_EQ(processors_of("dotprod").size(), 4u);
  EXPECT_FALSE(processors_of("v3").empty());
  EXPECT_TRUE(processors_of("other").empty());
  EXPECT_TRUE(find_processor("cortex-a76").ok());
  EXPECT_TRUE(check_processor(*find_processor("cortex-a76"), "i8mm").ok());
  EXPECT_THAT(check_processor(*find_processor("cortex-a76"), "amx").message(), HasSubstr("amx"));
  EXPECT_THAT(find_processor("m1").status().message(), HasSubstr("neoverse-n1"));
}

TEST(Mca, WritesRegionsAndReadsTheirCycles) {
  const std::vector<Strand> strands = {{{"sdot v0.4s, v1.16b, v2.4b[0]", "b.lt 0x8"}, 2}, {{"ret"}, 1}};
  EXPECT_EQ(mca_input(*find_processor("cortex-a76"), strands),
            "# LLVM-MCA-BEGIN strand0\nstrand0:\nsdot v0.4s, v1.16b, v2.4b[0]\nb.lt strand0\n# LLVM-MCA-END strand0\n"
            "# LLVM-MCA-BEGIN strand1\nstrand1:\nret\n# LLVM-MCA-END strand1\n");
  EXPECT_THAT(mca_input(*find_processor("haswell"), {}), HasSubstr(".intel_syntax noprefix"));
  const std::string region = R"({"Name": "a", "SummaryView": {"Iterations": 20, "TotalCycles": 50}})";
  const auto cycles = read_mca_output("{\"CodeRegions\": [" + region + "," + region + "]}", 2);
  ASSERT_TRUE(cycles.ok());
  EXPECT_THAT(*cycles, ElementsAre(2.5, 2.5));
  for (const char* bad : {"", "[]", "{}", R"({"CodeRegions": []})", R"({"CodeRegions": [1, 2]})",
                          R"({"CodeRegions": [{}, {"SummaryView": 3}]})"})
    EXPECT_FALSE(read_mca_output(bad, 2).ok()) << bad;
}

} // namespace
} // namespace cortiq::bench
