// Every matrix kernel as AArch64 code under emulation, against the reference decode and against the bits of the x86
// kernels.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "mlir/IR/MLIRContext.h"

#include "codegen/aarch64/aarch64.h"
#include "codegen/kernels/build_kernel.h"
#include "codegen/kernels/target_units.h"
#include "test/unit/aarch64/emulator.h"
#include "test/unit/kernels/kernel_runner.h"
#include "test/unit/x86/kernel_harness.h"

namespace cortiq::test {
namespace {

using codegen::KernelSpec;
using formats::KernelArgs;

/// As for x86: relative to sum |w x|.
constexpr double kTolerance = 4e-6;

struct Target {
  const char* name;
  const char* cpu; ///< the plainest processor that has it
};
// What a processor lacks proves that a target does without it.
constexpr Target kTargets[] = {{"armv8", "cortex-a72"}, {"dotprod", "cortex-a76"}, {"i8mm", "max"}};

testing::Emulator& emulator(const Target& target) {
  static std::map<std::string, testing::Emulator> emulators;
  return emulators.try_emplace(target.cpu, target.cpu).first->second;
}

codegen::MachineCode machine_code(mlir::MLIRContext& context, const KernelSpec& spec, const Target& target) {
  const codegen::Aarch64Features features = *codegen::aarch64_target(target.name);
  auto kernel = codegen::build_kernel(context, spec, codegen::vector_unit(features));
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  auto code = codegen::emit_aarch64(**kernel, features, {.poison = true});
  EXPECT_TRUE(code.ok()) << code.status().message();
  return code.ok() ? *code : codegen::MachineCode();
}

/// Calls the problem's machine code on the data.
std::vector<float> run_emulated(mlir::MLIRContext& context, const KernelProblem& problem, const Target& target,
                                const KernelData& data) {
  const codegen::MachineCode code = machine_code(context, problem.spec, target);
  return run_kernel(problem, data, [&](const KernelArgs* args) {
    const uint64_t floats = data.out_stride / 4 * problem.spec.tokens + 32;
    auto bytes = [](const auto& v) { return const_cast<void*>(static_cast<const void*>(v.data())); };
    const testing::Region regions[] = {
        {bytes(data.weights), data.weights.size()},          {bytes(data.act), data.act.size()},
        {bytes(data.residual), data.residual.size() * 4},    {bytes(data.bias), data.bias.size() * 4},
        {args->scratch, formats::kKernelScratchBytes, true}, {args->out - args->first_row - 16, floats * 4, true},
    };
    constexpr size_t kPointers = 7;
    const auto* words = reinterpret_cast<const uint64_t*>(args);
    ASSERT_EQ(emulator(target).call(code, {words, sizeof(KernelArgs) / 8}, kPointers, regions), "")
        << codegen::kernel_name(problem.spec);
  });
}

void expect_close(const KernelProblem& problem, const KernelData& data, const std::vector<float>& got) {
  ASSERT_EQ(got.size(), data.expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], data.expected[i], kTolerance * data.magnitude[i] + 1e-30)
        << codegen::kernel_name(problem.spec) << " token " << i / data.rows << " row " << i % data.rows;
}

class Aarch64KernelTest : public ::testing::TestWithParam<const formats::Codec*> {
protected:
  void SetUp() override {
    if (const std::string missing = testing::Emulator::missing(); !missing.empty())
      GTEST_SKIP() << missing;
  }
};

TEST_P(Aarch64KernelTest, MachineCodeMatchesTheReferenceDecode) {
  mlir::MLIRContext context;
  uint64_t seed = 1;
  // Emulation is slow: the targets take turns. That they agree is what the next test holds.
  const std::vector<KernelProblem> problems = kernel_problems(*GetParam(), "");
  for (size_t i = 0; i < problems.size(); ++i) {
    const Target& target = kTargets[i % std::size(kTargets)];
    KernelProblem problem = problems[i];
    problem.spec.isa = target.name;
    for (Data kind : {Data::kOrdinary, Data::kExtremes, Data::kZero}) {
      if (kind != Data::kOrdinary && (problem.spec.rows != 16 || problem.spec.tokens > 2))
        continue; // what the extremes may break is inside a step, which is the same in every tile
      KernelData data = make_kernel_data(problem, kind, ++seed);
      expect_close(problem, data, run_emulated(context, problem, target, data));
      if (HasFailure())
        return;
    }
  }
}

/// A row's result may depend neither on the tokens beside it nor on the target, x86's included.
TEST_P(Aarch64KernelTest, ResultsAreBitEqualInEveryTileAndToX86) {
  mlir::MLIRContext context;
  using formats::LayoutId;
  const bool has_x86 = testing::missing_for("x86-64-v3").empty();
  if (!has_x86)
    std::printf("not compared with x86 code, which this machine cannot run\n");
  const LayoutId layout = formats::r16_format(*GetParam(), 256).ok() ? LayoutId::kR16 : LayoutId::kVerbatim;
  for (uint64_t k : row_lengths(*GetParam()))
    for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
      if (arm == codegen::Arm::kFast && codegen::fast_arm(*GetParam(), layout) != arm)
        continue;
      KernelProblem problem{{.codec = GetParam()->id, .layout = layout, .k = k, .tokens = 8, .arm = arm}, 2};
      KernelData data = make_kernel_data(problem, Data::kOrdinary, k);
      std::vector<float> first;
      if (has_x86) {
        auto kernel = codegen::build_kernel(context, problem.spec, {});
        ASSERT_TRUE(kernel.ok());
        auto code = codegen::emit_x86(**kernel, *codegen::x86_target(problem.spec.isa));
        ASSERT_TRUE(code.ok());
        first = run_kernel(problem, data, [&](const KernelArgs* args) { ASSERT_EQ(testing::call(*code, args), ""); });
      }
      for (const Target& target : kTargets)
        for (uint32_t tokens : {8u, 4u, 2u, 1u}) {
          if (&target != &kTargets[1] && tokens != 4 && tokens != 1)
            continue; // the tiles' structure is the same on all three: what differs is a product
          KernelProblem tile = problem;
          tile.spec.tokens = tokens;
          tile.spec.isa = target.name;
          const std::vector<float> got = run_emulated(context, tile, target, data);
          if (first.empty())
            first = got;
          ASSERT_EQ(0, std::memcmp(got.data(), first.data(), got.size() * sizeof(float)))
              << codegen::kernel_name(tile.spec);
        }
    }
}

/// A processor without dot products refuses the code that has them: the emulated one is what it says it is.
TEST(Aarch64EmulatorTest, APlainProcessorRefusesDotProducts) {
  if (const std::string missing = testing::Emulator::missing(); !missing.empty())
    GTEST_SKIP() << missing;
  mlir::MLIRContext context;
  const KernelProblem problem{{.codec = formats::CodecId::kQ8_0, .k = 64, .isa = "dotprod"}, 1};
  const codegen::MachineCode code = machine_code(context, problem.spec, kTargets[1]);
  const KernelData data = make_kernel_data(problem, Data::kOrdinary, 1);
  run_kernel(problem, data, [&](const KernelArgs* args) {
    const auto* words = reinterpret_cast<const uint64_t*>(args);
    const testing::Region regions[] = {
        {const_cast<uint8_t*>(data.weights.data()), data.weights.size()},
        {const_cast<uint8_t*>(data.act.data()), data.act.size()},
        {args->scratch, formats::kKernelScratchBytes, true},
    };
    EXPECT_EQ(testing::Emulator("cortex-a72").call(code, {words, sizeof(KernelArgs) / 8}, 7, regions),
              "the processor cortex-a72 refused an instruction");
  });
}

std::vector<const formats::Codec*> codecs_with_kernels() {
  std::vector<const formats::Codec*> codecs;
  for (const formats::Codec& codec : formats::codec_table()) {
    KernelSpec spec{.codec = codec.id, .k = 256, .arm = codegen::Arm::kExact};
    KernelSpec verbatim = spec;
    verbatim.layout = formats::LayoutId::kVerbatim;
    if (codegen::can_build(spec).ok() || codegen::can_build(verbatim).ok())
      codecs.push_back(&codec);
  }
  return codecs;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Aarch64KernelTest, ::testing::ValuesIn(codecs_with_kernels()),
                         [](const auto& param) { return std::string(param.param->name); });

} // namespace
} // namespace cortiq::test
