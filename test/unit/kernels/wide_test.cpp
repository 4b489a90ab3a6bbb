// The wide arm: int8 activations with one scale a record, integer sums exact within it.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "codegen/kernels/wide_core.h"
#include "dialects/Vec/Interp/Interpreter.h"
#include "formats/codec/half.h"
#include "formats/layout/layout.h"
#include "test/unit/kernels/q8k.h"
#include "test/unit/kernels/x86_targets.h"
#include "test/unit/x86/kernel_harness.h"

namespace cortiq::test {
namespace {

using namespace formats;

constexpr uint64_t kRows = 32;

/// A matrix in the file's form with the floats of its records overwritten.
struct Matrix {
  const Codec& codec;
  uint64_t k;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> packed;
};

Matrix make_matrix(CodecId id, uint64_t k, std::optional<float> d, std::optional<float> dmin, bool all_ones,
                   uint64_t seed) {
  Matrix m{codec_info(id), k, {}, {}};
  m.payload.resize(*packed_bytes(m.codec, LayoutId::kVerbatim, kRows, k));
  EXPECT_TRUE(fill_random(m.codec, LayoutId::kVerbatim, kRows, k, seed, m.payload).ok());
  const uint64_t bytes = m.payload.size() / (kRows * k / m.codec.block);
  const bool k_quant = id != CodecId::kQ2_0_G128;
  for (uint64_t at = 0; at < m.payload.size(); at += bytes) {
    auto put = [&](uint64_t offset, float value) {
      const uint16_t half = f32_to_f16(value);
      std::memcpy(&m.payload[at + offset], &half, 2);
    };
    if (all_ones)
      std::memset(&m.payload[at], 0xff, bytes);
    if (d)
      put(0, *d);
    if (dmin && k_quant)
      put(2, *dmin);
  }
  m.packed.resize(*packed_bytes(m.codec, LayoutId::kR16, kRows, k) + kLayoutTailPadding);
  EXPECT_TRUE(pack(m.codec, LayoutId::kR16, m.payload, kRows, k, {},
                   std::span(m.packed).first(m.packed.size() - kLayoutTailPadding))
                  .ok());
  return m;
}

std::vector<double> decode_matrix(const Matrix& m) {
  std::vector<float> values(kRows * m.k);
  for (uint64_t row = 0; row < kRows; ++row)
    m.codec.decode_row(m.payload.data(), kRows, m.k, row, &values[row * m.k]);
  return {values.begin(), values.end()};
}

/// The products by every way there is to run a kernel here: the interpreter, and each target's machine code.
std::vector<std::pair<std::string, std::vector<float>>> multiply(const Matrix& m, const std::vector<Q8kRecord>& x) {
  mlir::MLIRContext context;
  std::vector<std::pair<std::string, std::vector<float>>> out;
  const R16Format format = *r16_format(m.codec, m.k);
  std::vector<uint8_t> act;
  for (const Q8kRecord& record : x)
    act.insert(act.end(), record.bytes.begin(), record.bytes.end());
  alignas(64) static uint8_t scratch[kKernelScratchBytes];
  for (const X86Target& target : kX86Targets)
    for (bool interpret : {true, false}) {
      if (!interpret && !testing::missing_for(target.name).empty()) {
        std::printf("not run for %s: this machine lacks %s\n", target.name, testing::missing_for(target.name).c_str());
        continue;
      }
      const codegen::KernelSpec spec{
          .codec = m.codec.id, .k = m.k, .tokens = uint32_t(x.size()), .arm = codegen::Arm::kWide, .isa = target.name};
      auto kernel = codegen::build_kernel(context, spec, target.unit);
      EXPECT_TRUE(kernel.ok()) << kernel.status().message();
      if (!kernel.ok())
        return out;
      std::vector<float> y(x.size() * kRows);
      KernelArgs args{};
      args.weights = m.packed.data() + format.tensor_bytes;
      args.tensor = m.packed.data();
      args.act = act.data();
      args.out = y.data();
      args.scratch = scratch;
      args.groups = kRows / kRowGroup;
      args.act_stride = x[0].bytes.size();
      args.out_stride = kRows * 4;
      if (interpret) {
        EXPECT_TRUE(mlir::succeeded(vec::interpretKernel(**kernel, &args)));
      } else {
        auto code = codegen::emit_x86(**kernel, *codegen::x86_target(target.name), {.poison = true});
        EXPECT_TRUE(code.ok()) << code.status().message();
        EXPECT_EQ(testing::call(*code, &args), "");
      }
      out.emplace_back(std::string(target.name) + (interpret ? " interpreted" : ""), std::move(y));
    }
  return out;
}

class WideTest : public ::testing::TestWithParam<CodecId> {};

/// With floats of 1 and no minima, a row of one record is its integer sum, which f32 rounds once; with floats of 0 and
/// minima of 1 it is the sum of minima. All targets, and the interpreter, give the integers of plain arithmetic: with
/// random codes and with all at their largest.
TEST_P(WideTest, IntegersAreThoseOfPlainArithmeticOnEveryTarget) {
  const Codec& codec = codec_info(GetParam());
  for (bool largest : {false, true})
    for (int which = 0; which < (GetParam() == CodecId::kQ2_0_G128 ? 1 : 2); ++which) {
      const Matrix m = make_matrix(codec.id, codec.block, which ? 0.0f : 1.0f, which ? 1.0f : 0.0f, largest, 5);
      const std::vector<double> w = decode_matrix(m); // integers
      std::vector<Q8kRecord> x;
      std::mt19937 random(3);
      for (int t = 0; t < 5; ++t) {
        std::vector<int8_t> codes(codec.block);
        for (size_t i = 0; i < codes.size(); ++i)
          codes[i] = t == 0 ? 127 : t == 1 ? -127 : t == 2 ? (i % 2 ? 127 : -127) : int(random() % 255) - 127;
        x.push_back(q8k_record(codes, {1.0f}, codec.block));
      }
      for (const auto& [name, y] : multiply(m, x))
        for (size_t t = 0; t < x.size(); ++t)
          for (uint64_t r = 0; r < kRows; ++r) {
            int64_t sum = 0;
            for (uint64_t i = 0; i < m.k; ++i)
              sum += int64_t(w[r * m.k + i]) * x[t].codes[i];
            ASSERT_EQ(y[t * kRows + r], float(sum)) << name << " token " << t << " row " << r;
          }
    }
}

TEST_P(WideTest, AllTargetsGiveTheSameBits) {
  const Codec& codec = codec_info(GetParam());
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (uint64_t k : {codec.block, 3 * codec.block}) {
    const Matrix m = make_matrix(codec.id, k, {}, {}, false, 9);
    const std::vector<double> w = decode_matrix(m);
    for (size_t tokens : {1u, 2u, 4u, 8u}) {
      std::vector<Q8kRecord> x;
      for (size_t t = 0; t < tokens; ++t) {
        std::vector<float> values(k);
        for (float& value : values)
          value = normal(random);
        x.push_back(quantize_q8k(values, codec.block));
      }
      const auto all = multiply(m, x);
      for (const auto& [name, y] : all)
        ASSERT_EQ(0, std::memcmp(y.data(), all[0].second.data(), y.size() * 4)) << name;
      for (size_t t = 0; t < tokens; ++t)
        for (uint64_t r = 0; r < kRows; ++r) {
          double expected = 0, magnitude = 0;
          for (uint64_t i = 0; i < k; ++i) {
            const double term = w[r * k + i] * x[t].codes[i] * x[t].scales[i / codec.block];
            expected += term;
            magnitude += std::abs(term);
          }
          // A few float steps a record, on terms that may cancel against minima.
          ASSERT_NEAR(all[0].second[t * kRows + r], expected, 1e-6 * magnitude + 1e-30);
        }
    }
  }
}

TEST(WideTest, OthersAreRefused) {
  codegen::KernelSpec spec{.codec = CodecId::kQ4_0, .k = 256, .arm = codegen::Arm::kWide};
  EXPECT_FALSE(codegen::can_build(spec).ok());
  spec.codec = CodecId::kQ4_K;
  EXPECT_TRUE(codegen::can_build(spec).ok());
  spec.tokens = 16;
  EXPECT_FALSE(codegen::can_build(spec).ok());
}

INSTANTIATE_TEST_SUITE_P(Codecs, WideTest, ::testing::Values(CodecId::kQ4_K, CodecId::kQ5_K, CodecId::kQ2_0_G128),
                         [](const auto& param) { return std::string(codec_info(param.param).name); });

} // namespace
} // namespace cortiq::test
