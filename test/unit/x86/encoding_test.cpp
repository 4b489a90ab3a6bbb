// What this machine can't run is at least well formed: LLVM's disassembler reads every instruction of random kernels
// back, on every target.

#include "test/unit/x86/random_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(X86Encoding, DisassemblesOnEveryTarget) {
  struct Case {
    const char* target;
    unsigned bits;
  };
  for (const auto& [target, bits] : {Case{"x86-64-v3", 256}, Case{"avxvnni", 256}, Case{"avx512vnni", 512}}) {
    const std::string missing = testing::missing_for(target);
    std::printf("%s: %s\n", target,
                missing.empty() ? "also run by random_program_test"
                                : ("disassembled only, this machine lacks " + missing).c_str());
    const auto features = codegen::x86_target(target);
    ASSERT_TRUE(features.ok());
    std::string all;
    for (uint32_t seed = 0; seed < 100; ++seed) {
      auto module = testing::random_program(seed, bits, 80);
      const auto code = codegen::emit_x86(*module->getOps<vec::KernelOp>().begin(), *features);
      ASSERT_TRUE(code.ok()) << code.status().message();
      const std::string text = print_asm(*code);
      ASSERT_THAT(text, Not(HasSubstr("(bad)"))) << "seed " << seed << " on " << target;
      all += text;
    }
    EXPECT_EQ(all.find("zmm") != std::string::npos, bits == 512) << target;
    EXPECT_EQ(all.find("vpdpbusd") != std::string::npos, std::string(target) != "x86-64-v3") << target;
    EXPECT_EQ(all.find("vpmaddubsw") != std::string::npos, true) << target; // vec.dot2
  }
}

} // namespace
} // namespace cortiq
