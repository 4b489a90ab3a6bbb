// Every cmf pass leaves the model's values as they are, bit for bit: the module is evaluated before and after.

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/passes/Passes.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/interp/memory_weights.h"
#include "test/unit/interp/small_decoder.h"

namespace cortiq::cmf {
namespace {

std::vector<float> evaluate(mlir::ModuleOp module) {
  MemoryWeights weights;
  StatusOr<Interpreter> engine = Interpreter::create(module, weights);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  if (!engine.ok())
    return {};
  // Two batches, so that the state passes from one to the other.
  std::vector<float> values;
  for (const std::vector<uint32_t>& batch : {std::vector<uint32_t>{5, 0, 23, 7}, std::vector<uint32_t>{1, 9}}) {
    StatusOr<std::span<const float>> logits = engine->forward(batch, /*allLogits=*/true);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    if (logits.ok())
      values.insert(values.end(), logits->begin(), logits->end());
  }
  return values;
}

size_t count(mlir::ModuleOp module, llvm::StringRef name) {
  size_t n = 0;
  module.walk([&](mlir::Operation* op) { n += op->getName().getStringRef() == name; });
  return n;
}

class Fusion : public testing::TestWithParam<SmallDecoder> {};

TEST_P(Fusion, ValuesStayAfterEveryPass) {
  mlir::MLIRContext context;
  context.loadDialect<CMFDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(smallDecoder(GetParam()), &context);
  ASSERT_TRUE(module);
  const std::vector<float> expected = evaluate(*module);
  ASSERT_EQ(expected.size(), 6u * kSmallVocab);
  for (float value : expected)
    ASSERT_TRUE(std::isfinite(value));

  using Create = std::unique_ptr<mlir::Pass> (*)();
  for (Create create : {Create(compiler::createCmfFuseDequantMatmul), Create(compiler::createCmfFuseQkv),
                        Create(compiler::createCmfFuseGateUp), Create(compiler::createCmfFuseNormResidual),
                        Create(compiler::createCmfVerifyModel)}) {
    mlir::PassManager passes(&context);
    passes.addPass(create());
    const std::string name = passes.begin()->getName().str();
    ASSERT_TRUE(mlir::succeeded(passes.run(*module))) << name;
    EXPECT_EQ(evaluate(*module), expected) << "after " << name;
  }

  // And they did fuse: per layer qkv, o, gate+up, down, and the head.
  EXPECT_EQ(count(*module, "cmf.fused_matmul"), 2u * 4 + 1);
  EXPECT_EQ(count(*module, "cmf.matmul") + count(*module, "cmf.dequant") + count(*module, "cmf.bias_add"), 0u);
  EXPECT_EQ(count(*module, "cmf.add"), 0u);
  EXPECT_EQ(count(*module, "cmf.add_rms_norm"), GetParam().sandwich ? 4u : 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Decoders, Fusion,
    testing::Values(SmallDecoder{}, SmallDecoder{.biases = true}, SmallDecoder{.headNorms = true, .tied = true},
                    SmallDecoder{.biases = true, .headNorms = true, .sandwich = true, .window = true}));

} // namespace
} // namespace cortiq::cmf
