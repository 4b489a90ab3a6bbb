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

/// Runs machine code on the data of a call; empty when all went well.
std::string call_emulated(const Target& target, const codegen::MachineCode& code, const KernelArgs& args,
                          const KernelData& data, uint32_t tokens, uint64_t scratch_bytes) {
  const uint64_t floats = data.out_stride / 4 * tokens + 32;
  auto bytes = [](const auto& v) { return const_cast<void*>(static_cast<const void*>(v.data())); };
  const testing::Region regions[] = {
      {bytes(data.weights), data.weights.size()},
      {bytes(data.act), data.act.size()},
      {bytes(data.residual), data.residual.size() * 4},
      {bytes(data.bias), data.bias.size() * 4},
      {args.scratch, scratch_bytes, true},
      {args.out - args.first_row - 16, floats * 4, true},
  };
  constexpr size_t kPointers = 7;
  const auto* words = reinterpret_cast<const uint64_t*>(&args);
  return emulator(target).call(code, {words, sizeof(KernelArgs) / 8}, kPointers, regions);
}

/// Calls the problem's machine code on the data.
std::vector<float> run_emulated(mlir::MLIRContext& context, const KernelProblem& problem, const Target& target,
                                const KernelData& data) {
  const codegen::MachineCode code = machine_code(context, problem.spec, target);
  return run_kernel(problem, data, [&](const KernelArgs* args) {
    ASSERT_EQ(call_emulated(target, code, *args, data, problem.spec.tokens, formats::kKernelScratchBytes), "")
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

/// Kernels that decode a row group once for many tokens, on products of row pairs where the target has them, give the
/// bits of the kernels for one token, x86's included: for any number of tokens, and where neither they nor the row
/// groups nor K fill whole blocks.
TEST_P(Aarch64KernelTest, ManyTokensGiveTheBitsOfSingleTokens) {
  mlir::MLIRContext context;
  constexpr uint32_t kMost = 64;
  if (!testing::missing_for("x86-64-v3").empty())
    GTEST_SKIP() << "what is compared with is x86 code, which this machine cannot run";
  std::vector<uint64_t> lengths = row_lengths(*GetParam());
  // Longer than a chunk of the panel, with a rest behind it.
  const uint64_t block = GetParam()->block ? GetParam()->block : 32;
  lengths.push_back((1100 + block - 1) / block * block);
  uint64_t seed = 100;
  for (uint64_t k : lengths)
    for (uint32_t rows : {16u, 5u}) {
      KernelProblem problem{{.codec = GetParam()->id, .k = k, .rows = rows, .tokens = kMost, .isa = "x86-64-v3"},
                            rows != 16             ? 1u
                            : k == lengths.front() ? 5u
                                                   : 2u};
      if (codegen::fast_arm(*GetParam(), problem.spec.layout) != codegen::Arm::kFast ||
          !codegen::has_tile_kernel(problem.spec) || !codegen::can_build(problem.spec).ok())
        continue;
      problem.spec.bias = problem.spec.residual = rows == 5 || k % 64 == 0;
      KernelSpec single = problem.spec;
      single.tokens = 1;
      auto x86_kernel = codegen::build_kernel(context, single, {});
      ASSERT_TRUE(x86_kernel.ok());
      auto x86_code = codegen::emit_x86(**x86_kernel, *codegen::x86_target(single.isa));
      ASSERT_TRUE(x86_code.ok());
      for (Data kind : {Data::kOrdinary, Data::kExtremes, Data::kZero}) {
        if (kind != Data::kOrdinary && (rows != 16 || k != lengths.back()))
          continue;
        const KernelData data = make_kernel_data(problem, kind, ++seed);
        std::vector<float> expected;
        for (uint32_t t = 0; t < kMost; ++t) {
          KernelData one = data;
          one.act.erase(one.act.begin(), one.act.begin() + int64_t(t * data.act_stride));
          if (problem.spec.residual)
            one.residual.erase(one.residual.begin(), one.residual.begin() + int64_t(t * data.out_stride / 4));
          const std::vector<float> of_token = run_kernel({single, problem.groups}, one, [&](const KernelArgs* args) {
            ASSERT_EQ(testing::call(*x86_code, args), "");
          });
          expected.insert(expected.end(), of_token.begin(), of_token.end());
        }
        expect_close(problem, data, expected);
        for (const Target& target : kTargets) {
          const bool on_pairs = &target == &kTargets[2];
          if (!on_pairs && (k != lengths.back() || kind == Data::kZero))
            continue; // the core is that of few tokens, and the panel holds what the decoder gives
          const bool every = on_pairs && kind == Data::kOrdinary && k == lengths.front() && rows == 16;
          problem.spec.isa = target.name;
          const codegen::MachineCode code = machine_code(context, problem.spec, target);
          std::vector<uint8_t> memory(formats::many_kernel_scratch_bytes(k, kMost, false) + 64, 0xff);
          uint8_t* scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
          for (uint32_t tokens = 1; tokens <= kMost; ++tokens) {
            if (every ? tokens > 17 && tokens != kMost : tokens != 3 && tokens != 18)
              continue;
            KernelProblem few = problem;
            few.spec.tokens = tokens;
            const std::vector<float> got = run_kernel(few, data, [&](const KernelArgs* args) {
              KernelArgs own = *args;
              own.scratch = scratch;
              const std::string error = call_emulated(target, code, own, data, tokens, memory.size() - 64);
              ASSERT_EQ(error, "") << codegen::kernel_name(problem.spec);
            });
            ASSERT_EQ(0, std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)))
                << codegen::kernel_name(problem.spec) << ", " << tokens << " tokens";
          }
        }
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
