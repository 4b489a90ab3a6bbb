// Random kernels, run by the interpreter and as machine code.

#include "test/unit/x86/random_program.h"

#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

namespace cortiq {
namespace {

// Programs for each target; fewer under a sanitizer, which makes each some fifty times slower.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORTIQ_SLOW_PROGRAMS 1
#endif
#endif
#ifdef CORTIQ_SLOW_PROGRAMS
constexpr uint32_t kPrograms = 60;
#else
constexpr uint32_t kPrograms = 1500;
#endif

struct Case {
  const char* target;
  unsigned bits;
};

class RandomPrograms : public ::testing::TestWithParam<Case> {};

TEST_P(RandomPrograms, MachineCodeComputesWhatTheInterpreterDoes) {
  const auto [target, bits] = GetParam();
  if (const std::string missing = testing::missing_for(target); !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing << "; the code is disassembled in encoding_test instead";
  testing::GuardedBuffer in0(testing::kInputBytes), in1(testing::kInputBytes);
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    testing::fill_inputs(seed, in0, in1);
    auto module = testing::random_program(seed * 7919 + bits, bits, 10 + static_cast<int>(seed % 90));
    ASSERT_TRUE(succeeded(mlir::verify(*module))) << "seed " << seed;
    vec::KernelOp kernel = *module->getOps<vec::KernelOp>().begin();
    const std::string difference =
        testing::compare_with_interpreter(kernel, target, in0, in1, testing::kOutputBytes, seed % 8, seed % 5);
    ASSERT_EQ(difference, "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RandomPrograms,
                         ::testing::Values(Case{"x86-64-v3", 256}, Case{"x86-64-v3", 128}, Case{"avxvnni", 256},
                                           Case{"avx512vnni", 512}, Case{"avx512vnni", 256}),
                         [](const auto& info) {
                           std::string name = std::string(info.param.target) + "_" + std::to_string(info.param.bits);
                           for (char& c : name)
                             c = c == '-' ? '_' : c;
                           return name;
                         });

} // namespace
} // namespace cortiq
