// The exact arm on heavy-tailed data: it stays at the f64 product of the decoded weights, where int8 activations stray.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "formats/encode/encoder.h"
#include "formats/layout/layout.h"
#include "test/unit/kernels/kernel_runner.h"
#include "test/unit/x86/kernel_harness.h"

namespace cortiq::test {
namespace {

using namespace formats;
using codegen::Arm;

constexpr uint64_t kK = 2048, kRows = 32;

/// Gaussian weights, every 137th nine times as large, as the codec holds them. Codecs that the converter does not write
/// have random blocks, whose scales differ by orders of magnitude.
std::vector<uint8_t> heavy_tailed(const Codec& codec) {
  if (const Encoder* encoder = find_encoder(codec.id)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.05f);
    std::vector<float> values(kRows * kK);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = normal(random) * (i % 137 == 0 ? 9.0f : 1.0f);
    auto payload = encode_matrix(*encoder, values, kRows, kK);
    EXPECT_TRUE(payload.ok());
    return *payload;
  }
  std::vector<uint8_t> payload(*packed_bytes(codec, LayoutId::kVerbatim, kRows, kK));
  EXPECT_TRUE(fill_random(codec, LayoutId::kVerbatim, kRows, kK, 1, payload).ok());
  return payload;
}

std::vector<float> multiply(const Codec& codec, const std::vector<uint8_t>& packed, const std::vector<float>& x,
                            Arm arm) {
  mlir::MLIRContext context;
  const codegen::KernelSpec spec{.codec = codec.id, .k = kK, .arm = arm, .isa = "x86-64-v3"};
  auto kernel = codegen::build_kernel(context, spec, {.lanes = 8});
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  auto code = codegen::emit_x86(**kernel, *codegen::x86_target("x86-64-v3"), {});
  EXPECT_TRUE(code.ok()) << code.status().message();
  std::vector<uint8_t> act(f32_act_bytes(kK));
  std::memcpy(act.data(), x.data(), kK * 4);
  if (arm == Arm::kFast)
    act = quantize_q8a(x);
  alignas(64) static uint8_t scratch[kKernelScratchBytes];
  std::vector<float> y(kRows);
  KernelArgs args{};
  args.tensor = packed.data();
  args.weights = packed.data() + r16_format(codec, kK)->tensor_bytes;
  args.act = act.data();
  args.out = y.data();
  args.scratch = scratch;
  args.groups = kRows / kRowGroup;
  args.tensor_rows = kRows;
  EXPECT_EQ(testing::call(*code, &args), "");
  return y;
}

class ExactArmTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ExactArmTest, StaysAtTheProductWhereInt8Strays) {
  if (const std::string missing = testing::missing_for("x86-64-v3"); !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing;
  const Codec& codec = *find_codec(GetParam());
  const std::vector<uint8_t> payload = heavy_tailed(codec);
  std::vector<uint8_t> packed(*packed_bytes(codec, LayoutId::kR16, kRows, kK) + kLayoutTailPadding);
  ASSERT_TRUE(
      pack(codec, LayoutId::kR16, payload, kRows, kK, {}, std::span(packed).first(packed.size() - kLayoutTailPadding))
          .ok());
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(kK);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * (i % 61 == 0 ? 12.0f : 1.0f);
  std::vector<double> product(kRows), scale(kRows);
  for (uint64_t r = 0; r < kRows; ++r) {
    std::vector<float> w(kK);
    codec.decode_row(payload.data(), kRows, kK, r, w.data());
    for (uint64_t i = 0; i < kK; ++i) {
      product[r] += double(w[i]) * x[i];
      scale[r] += std::pow(double(w[i]) * x[i], 2);
    }
    scale[r] = std::sqrt(scale[r]); // what a sum of independent products is expected to be
  }
  auto error = [&](const std::vector<float>& y) {
    double sum = 0;
    for (uint64_t r = 0; r < kRows; ++r)
      sum += scale[r] > 0 ? std::pow((y[r] - product[r]) / scale[r], 2) : 0;
    return std::sqrt(sum / kRows);
  };
  const std::vector<float> exact = multiply(codec, packed, x, Arm::kExact);
  for (uint64_t r = 0; r < kRows; ++r)
    EXPECT_NEAR(exact[r], product[r], 1e-4 * scale[r]) << "row " << r;
  if (codegen::fast_arm(codec, LayoutId::kR16) != Arm::kFast)
    return; // both arms are one
  const double strays = error(multiply(codec, packed, x, Arm::kFast));
  EXPECT_LT(10 * error(exact), strays);
  EXPECT_LT(strays, 0.02); // and the bound of the fast arm
}

INSTANTIATE_TEST_SUITE_P(Schemes, ExactArmTest,
                         ::testing::Values("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k", "q4_0", "q4_1", "q5_0",
                                           "q5_1", "q8_0", "tq1_0", "tq2_0", "q1_0", "q2_0", "q2_0_g128", "fv5", "fv5b",
                                           "g8_0", "ptq1_0", "mxfp4", "mxfp4_ggml", "nvfp4", "iq4_xs", "iq4_nl",
                                           "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m"),
                         [](const auto& param) { return std::string(param.param); });

} // namespace
} // namespace cortiq::test
