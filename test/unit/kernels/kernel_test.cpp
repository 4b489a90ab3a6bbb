// Every matrix kernel against the reference decode: machine code where this host can run it, the vec interpreter
// always.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "dialects/Vec/Interp/Interpreter.h"
#include "test/unit/kernels/kernel_runner.h"
#include "test/unit/kernels/x86_targets.h"
#include "test/unit/x86/kernel_harness.h"

namespace cortiq::test {
namespace {

using codegen::KernelSpec;

/// Relative to sum |w x|: K float additions and one product each, K below 1024, in round to nearest.
constexpr double kTolerance = 4e-6;

void expect_close(const KernelProblem& problem, const KernelData& data, const std::vector<float>& got) {
  ASSERT_EQ(got.size(), data.expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], data.expected[i], kTolerance * data.magnitude[i] + 1e-30)
        << codegen::kernel_name(problem.spec) << " token " << i / data.rows << " row " << i % data.rows;
}

constexpr X86Target kTiles{"amx", {.lanes = 16, .dot4 = true, .byte_tables = true, .tiles = true}};

/// Whether machine code on tiles runs here; said where it does not.
bool has_tiles() {
  const std::string missing = testing::missing_for(kTiles.name);
  if (!missing.empty())
    std::printf("machine code not run for %s: this machine lacks %s\n", kTiles.name, missing.c_str());
  return missing.empty();
}

class KernelTest : public ::testing::TestWithParam<const formats::Codec*> {};

TEST_P(KernelTest, InterpretedKernelsMatchTheReferenceDecode) {
  mlir::MLIRContext context;
  uint64_t seed = 1;
  for (const KernelProblem& problem : kernel_problems(*GetParam(), "x86-64-v3")) {
    // The interpreter is slow: it takes the tiles that differ in structure.
    if (problem.spec.tokens > 4 || (problem.spec.tokens == 2 && problem.spec.rows != 16))
      continue;
    auto kernel = codegen::build_kernel(context, problem.spec, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    KernelData data = make_kernel_data(problem, Data::kOrdinary, ++seed);
    std::vector<float> got = run_kernel(problem, data, [&](const formats::KernelArgs* args) {
      ASSERT_TRUE(mlir::succeeded(vec::interpretKernel(**kernel, args)));
    });
    expect_close(problem, data, got);
    if (HasFatalFailure())
      return;
  }
}

/// Calls the problem's machine code on the data.
std::vector<float> run_machine_code(mlir::MLIRContext& context, const KernelProblem& problem, const X86Target& target,
                                    const KernelData& data) {
  auto kernel = codegen::build_kernel(context, problem.spec, target.unit);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  auto code = codegen::emit_x86(**kernel, *codegen::x86_target(target.name), {.poison = true});
  EXPECT_TRUE(code.ok()) << code.status().message();
  return run_kernel(problem, data, [&](const formats::KernelArgs* args) { EXPECT_EQ(testing::call(*code, args), ""); });
}

TEST_P(KernelTest, MachineCodeMatchesTheReferenceDecode) {
  mlir::MLIRContext context;
  uint64_t seed = 1;
  for (const X86Target& target : kX86Targets) {
    if (std::string missing = testing::missing_for(target.name); !missing.empty()) {
      std::printf("not run for %s: this machine lacks %s\n", target.name, missing.c_str());
      continue;
    }
    for (const KernelProblem& problem : kernel_problems(*GetParam(), target.name))
      for (Data kind : {Data::kOrdinary, Data::kExtremes, Data::kZero}) {
        if (kind != Data::kOrdinary && (problem.spec.rows != 16 || problem.spec.tokens > 2))
          continue; // what the extremes may break is inside a step, which is the same in every tile
        KernelData data = make_kernel_data(problem, kind, ++seed);
        expect_close(problem, data, run_machine_code(context, problem, target, data));
        if (HasFatalFailure())
          return;
      }
  }
}

/// A row's result may depend neither on the tokens beside it nor on the target.
TEST_P(KernelTest, ResultsAreBitEqualInEveryTileAndOnEveryTarget) {
  mlir::MLIRContext context;
  using formats::LayoutId;
  const LayoutId layout = formats::r16_format(*GetParam(), 256).ok() ? LayoutId::kR16 : LayoutId::kVerbatim;
  for (uint64_t k : row_lengths(*GetParam()))
    for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
      if (arm == codegen::Arm::kFast && codegen::fast_arm(*GetParam(), layout) != arm)
        continue;
      KernelProblem problem{
          {.codec = GetParam()->id, .layout = layout, .k = k, .tokens = 8, .arm = arm, .isa = kX86Targets[0].name}, 2};
      KernelData data = make_kernel_data(problem, Data::kOrdinary, k);
      std::vector<float> first;
      // Kernels for one token hold no tiles: those of the target that has them run here too.
      std::vector<X86Target> targets(std::begin(kX86Targets), std::end(kX86Targets));
      targets.push_back(targets.back());
      targets.back().unit.tiles = true;
      for (const X86Target& target : targets) {
        if (!testing::missing_for(target.name).empty())
          continue; // the test above says so
        for (uint32_t tokens : {8u, 4u, 2u, 1u}) {
          if (target.unit.tiles && tokens > 1)
            continue;
          KernelProblem tile = problem;
          tile.spec.tokens = tokens;
          tile.spec.isa = target.name;
          const std::vector<float> got = run_machine_code(context, tile, target, data);
          if (first.empty())
            first = got;
          ASSERT_EQ(0, std::memcmp(got.data(), first.data(), got.size() * sizeof(float)))
              << codegen::kernel_name(tile.spec);
        }
      }
    }
}

/// Kernels on tiles give the bits of the kernels for one token: through the interpreter everywhere, as machine code
/// where there are tiles. Neither the tokens nor the row groups fill whole blocks.
TEST_P(KernelTest, TilesGiveTheBitsOfSingleTokens) {
  mlir::MLIRContext context;
  const bool runs = has_tiles();
  std::vector<uint64_t> lengths = row_lengths(*GetParam());
  // Longer than a chunk of the panel.
  const uint64_t block = GetParam()->block ? GetParam()->block : 32;
  lengths.push_back((1100 + block - 1) / block * block);
  for (uint64_t k : lengths)
    for (uint32_t rows : {16u, 5u}) {
      KernelProblem problem{{.codec = GetParam()->id, .k = k, .rows = rows, .tokens = 19, .isa = kTiles.name},
                            rows != 16             ? 1u
                            : k == lengths.front() ? 4u
                                                   : 2u};
      if (codegen::fast_arm(*GetParam(), problem.spec.layout) != codegen::Arm::kFast ||
          !codegen::has_tile_kernel(problem.spec) || !codegen::can_build(problem.spec).ok())
        continue;
      problem.spec.bias = problem.spec.residual = rows == 5 || k % 64 == 0;
      if (k == lengths.back())
        problem.spec.tokens += uint32_t(formats::kTileKernelTokens);
      auto kernel = codegen::build_kernel(context, problem.spec, kTiles.unit);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      ASSERT_TRUE(codegen::emit_x86(**kernel, *codegen::x86_target(kTiles.name)).ok());
      const KernelData data = make_kernel_data(problem, Data::kOrdinary, k);
      std::vector<std::vector<float>> results = {run_kernel(problem, data, [&](const formats::KernelArgs* args) {
        ASSERT_TRUE(mlir::succeeded(vec::interpretKernel(**kernel, args)));
      })};
      if (runs)
        results.push_back(run_machine_code(context, problem, kTiles, data));
      expect_close(problem, data, results[0]);
      KernelProblem single = problem;
      single.spec.tokens = 1;
      single.spec.isa = kX86Targets[0].name;
      for (uint32_t t = 0; t < problem.spec.tokens; ++t) {
        KernelData one = data;
        one.act.erase(one.act.begin(), one.act.begin() + int64_t(t * data.act_stride));
        if (problem.spec.residual)
          one.residual.erase(one.residual.begin(), one.residual.begin() + int64_t(t * data.out_stride / 4));
        const std::vector<float> expected = run_machine_code(context, single, kX86Targets[0], one);
        for (const std::vector<float>& result : results)
          ASSERT_EQ(0, std::memcmp(result.data() + t * data.rows, expected.data(), data.rows * sizeof(float)))
              << codegen::kernel_name(problem.spec) << " token " << t;
      }
    }
}

/// A token's results do not depend on how many are given at once, nor on which place it has among them.
void expect_same_in_pieces(const KernelProblem& problem, KernelData data, const std::vector<float>& whole,
                           const std::function<void(const formats::KernelArgs*)>& kernel) {
  constexpr uint64_t kPiece = 20; // a token stands elsewhere in its tile then
  data.act.resize(data.act.size() + formats::kTileKernelTokens * data.act_stride, 0x55); // whole blocks are read
  const std::vector<float> pieces = run_kernel(problem, data, [&](const formats::KernelArgs* args) {
    for (uint64_t done = 0; done < args->tokens; done += kPiece) {
      formats::KernelArgs part = *args;
      part.tokens = std::min(kPiece, args->tokens - done);
      part.act += done * args->act_stride;
      part.out += done * args->out_stride / sizeof(float);
      part.residual = part.residual ? part.residual + done * args->residual_stride / sizeof(float) : nullptr;
      kernel(&part);
    }
  });
  ASSERT_EQ(pieces.size(), whole.size());
  EXPECT_EQ(0, std::memcmp(pieces.data(), whole.data(), whole.size() * sizeof(float)))
      << codegen::kernel_name(problem.spec);
}

/// Kernels on tiles of bf16 multiply rounded weights with rounded activations: through the interpreter everywhere, as
/// machine code where there are such tiles. Neither tokens, row groups nor chunks of K fill whole blocks.
TEST_P(KernelTest, TilesOfBf16MatchTheRoundedReference) {
  mlir::MLIRContext context;
  const bool runs = has_tiles();
  std::vector<uint64_t> lengths = row_lengths(*GetParam());
  const uint64_t block = GetParam()->block ? GetParam()->block : 32;
  lengths.push_back((2 * formats::kBf16ChunkWeights + 100 + block - 1) / block * block);
  for (uint64_t k : lengths)
    for (uint32_t rows : {16u, 5u}) {
      const bool longest = k == lengths.back();
      KernelProblem problem{{.codec = GetParam()->id,
                             .k = k,
                             .rows = rows,
                             .tokens = longest ? 17u : 51u,
                             .arm = codegen::Arm::kBf16,
                             .isa = kTiles.name},
                            rows != 16 ? 1u
                            : longest  ? 2u
                                       : 4u};
      if (!codegen::can_build(problem.spec).ok() ||
          codegen::fast_arm(*GetParam(), problem.spec.layout) != codegen::Arm::kFast || (longest && rows != 16))
        continue;
      problem.spec.bias = problem.spec.residual = rows == 5 || k % 64 == 0;
      auto kernel = codegen::build_kernel(context, problem.spec, kTiles.unit);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      ASSERT_TRUE(codegen::emit_x86(**kernel, *codegen::x86_target(kTiles.name)).ok());
      const KernelData data = make_kernel_data(problem, Data::kOrdinary, k);
      const std::vector<float> interpreted = run_kernel(problem, data, [&](const formats::KernelArgs* args) {
        ASSERT_TRUE(mlir::succeeded(vec::interpretKernel(**kernel, args)));
      });
      expect_close(problem, data, interpreted);
      if (rows == 5)
        expect_same_in_pieces(problem, data, interpreted, [&](const formats::KernelArgs* args) {
          ASSERT_TRUE(mlir::succeeded(vec::interpretKernel(**kernel, args)));
        });
      if (runs)
        expect_close(problem, data, run_machine_code(context, problem, kTiles, data));
      if (HasFatalFailure())
        return;
    }
}

/// The arm's form of K activations of which one is 1, with a scale of 1 where there are scales.
std::vector<uint8_t> one_activation(codegen::Arm arm, uint64_t k, uint64_t which) {
  const auto put = [](std::vector<uint8_t>& bytes, uint64_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  if (arm == codegen::Arm::kExact) {
    std::vector<uint8_t> floats(4 * k);
    put(floats, 4 * which, 1.0f);
    return floats;
  }
  const formats::Q8ActLayout layout = formats::q8_act_layout(k);
  const uint64_t group = which / 32;
  std::vector<uint8_t> record(layout.bytes);
  put(record, which, int8_t(1));
  put(record, layout.scale + 4 * group, 1.0f);
  put(record, layout.msum + 4 * group, 1.0f);
  put(record, layout.sum32 + 4 * group, int32_t(1));
  put(record, layout.sum16 + 4 * (which / 16), int32_t(1));
  return record;
}

/// With one activation of 1 the sum is one weight, exactly: nothing but its level times its scale. Every fifth weight
/// of the first `rows` rows is held against the reference decode, on every target.
void expect_weights(KernelProblem problem, KernelData data, uint64_t rows) {
  mlir::MLIRContext context;
  const formats::Codec& codec = formats::codec_info(problem.spec.codec);
  const std::span<const uint8_t> packed(data.weights.data(), data.weights.size() - formats::kLayoutTailPadding);
  std::vector<std::vector<float>> expected(rows, std::vector<float>(problem.spec.k));
  for (uint64_t r = 0; r < rows; ++r)
    ASSERT_TRUE(
        formats::decode_packed_row(codec, problem.spec.layout, packed, data.rows, problem.spec.k, r, expected[r].data())
            .ok());
  for (const X86Target& target : kX86Targets) {
    if (!testing::missing_for(target.name).empty())
      continue;
    problem.spec.isa = target.name;
    for (uint64_t k = 0; k < problem.spec.k; k += 5) {
      data.act = one_activation(problem.spec.arm, problem.spec.k, k);
      const std::vector<float> got = run_machine_code(context, problem, target, data);
      ASSERT_EQ(got.size(), data.rows);
      for (uint64_t r = 0; r < rows; ++r)
        ASSERT_EQ(got[r], expected[r][k]) << codegen::kernel_name(problem.spec) << " row " << r << " weight " << k;
    }
  }
}

/// A whole code word and a part of one.
TEST(LadderKernelTest, ScalesAreTheLaddersBitForBit) {
  for (codegen::Arm arm : {codegen::Arm::kExact, codegen::Arm::kFast}) {
    const KernelProblem problem{{.codec = formats::CodecId::kQ4TP, .k = 8 * 32, .arm = arm}, 4};
    expect_weights(problem, make_kernel_data(problem, Data::kZero, 77), 4 * formats::kRowGroup);
  }
}

/// Row r has scale r: every power of two, subnormal ones included. From 253 on there are infinite weights, which sums
/// of floats do not bear; 255 is no number without "ggml".
TEST(Mxfp4KernelTest, ScalesArePowersOfTwo) {
  for (const formats::CodecId id : {formats::CodecId::kMXFP4, formats::CodecId::kMXFP4_GGML})
    for (codegen::Arm arm : {codegen::Arm::kExact, codegen::Arm::kFast}) {
      const KernelProblem problem{{.codec = id, .k = 32, .arm = arm}, 16};
      KernelData data = make_kernel_data(problem, Data::kZero, 5);
      const formats::R16Format format = *formats::r16_format(formats::codec_info(id), problem.spec.k);
      const uint64_t group_bytes = formats::kRowGroup * format.row_bytes();
      for (uint64_t r = 0; r < data.rows; ++r)
        data.weights[format.tensor_bytes + r / formats::kRowGroup * group_bytes +
                     formats::kRowGroup * (format.header_bytes + format.field("e").offset) + r % formats::kRowGroup] =
            uint8_t(r);
      expect_weights(problem, data, arm == codegen::Arm::kExact ? 253 : id == formats::CodecId::kMXFP4 ? 255 : 256);
    }
}

/// The materialised path gives the bits of the kernels for one token, in both arms and on every target, for numbers of
/// tokens that fill no whole tile.
TEST_P(KernelTest, MaterialisedRowsGiveTheBitsOfSingleTokens) {
  mlir::MLIRContext context;
  uint64_t seed = 7;
  for (uint64_t k : row_lengths(*GetParam()))
    for (uint32_t rows : {16u, 5u, 9u})
      for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
        KernelProblem problem{
            {.codec = GetParam()->id, .k = k, .rows = rows, .tokens = rows == 16 ? 19u : 17u, .arm = arm},
            rows == 16 ? 2u : 1u};
        if (!codegen::can_build(problem.spec).ok())
          continue;
        problem.spec.bias = rows == 9;
        problem.spec.residual = rows != 9;
        const KernelData data = make_kernel_data(problem, Data::kOrdinary, ++seed);
        for (const X86Target& target : kX86Targets) {
          if (!testing::missing_for(target.name).empty())
            continue; // the test of machine code says so
          problem.spec.isa = target.name;
          const std::vector<float> many = run_machine_code(context, problem, target, data);
          expect_close(problem, data, many);
          KernelProblem single = problem;
          single.spec.tokens = 1;
          for (uint32_t t : {0u, 3u, 7u, 8u, 15u, 16u}) {
            KernelData one = data;
            one.act.erase(one.act.begin(), one.act.begin() + int64_t(t * data.act_stride));
            if (problem.spec.residual)
              one.residual.erase(one.residual.begin(), one.residual.begin() + int64_t(t * data.out_stride / 4));
            const std::vector<float> expected = run_machine_code(context, single, target, one);
            ASSERT_EQ(0, std::memcmp(many.data() + t * data.rows, expected.data(), data.rows * sizeof(float)))
                << codegen::kernel_name(problem.spec) << " token " << t;
          }
          if (HasFatalFailure())
            return;
        }
      }
}

std::vector<const formats::Codec*> codecs_with_kernels() {
  std::vector<const formats::Codec*> codecs;
  for (const formats::Codec& codec : formats::codec_table()) {
    KernelSpec spec;
    spec.codec = codec.id;
    spec.k = 256;
    spec.arm = codegen::Arm::kExact;
    KernelSpec verbatim = spec;
    verbatim.layout = formats::LayoutId::kVerbatim;
    if (codegen::can_build(spec).ok() || codegen::can_build(verbatim).ok())
      codecs.push_back(&codec);
  }
  return codecs;
}

INSTANTIATE_TEST_SUITE_P(Codecs, KernelTest, ::testing::ValuesIn(codecs_with_kernels()),
                         [](const auto& param) { return std::string(param.param->name); });

} // namespace
} // namespace cortiq::test
