// Every matrix kernel against the reference decode: machine code where this host can run it, the vec interpreter
// always.

#include <gtest/gtest.h>

#include <cmath>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "dialects/Vec/Interp/Interpreter.h"
#include "test/unit/kernels/kernel_runner.h"

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

class KernelTest : public testing::TestWithParam<const formats::Codec*> {};

TEST_P(KernelTest, InterpretedKernelsMatchTheReferenceDecode) {
  mlir::MLIRContext context;
  uint64_t seed = 1;
  for (const KernelProblem& problem : kernel_problems(*GetParam(), "x86-64-v3")) {
    // The interpreter is slow: it takes the tiles that differ in structure.
    if (problem.spec.tokens > 4 || (problem.spec.tokens == 2 && problem.spec.rows != 16))
      continue;
    auto kernel = codegen::build_kernel(context, problem.spec, 8);
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

std::vector<const formats::Codec*> codecs_with_kernels() {
  std::vector<const formats::Codec*> codecs;
  for (const formats::Codec& codec : formats::codec_table()) {
    KernelSpec spec;
    spec.codec = codec.id;
    spec.k = 256;
    spec.arm = codegen::Arm::kExact;
    if (codegen::can_build(spec).ok())
      codecs.push_back(&codec);
  }
  return codecs;
}

INSTANTIATE_TEST_SUITE_P(Codecs, KernelTest, testing::ValuesIn(codecs_with_kernels()),
                         [](const auto& param) { return std::string(param.param->name); });

} // namespace
} // namespace cortiq::test
