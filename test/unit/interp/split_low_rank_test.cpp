// cmf-split-low-rank leaves the model's values as they are, but for the order of sums.

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "compiler/passes/Passes.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "formats/codec/half.h"
#include "formats/codec/low_rank.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/interp/memory_weights.h"

namespace cortiq::cmf {
namespace {

// A head of 20 of the 40 rows that its file has, of two paths, with a bias; the embedding is plain.
constexpr const char* kModel = R"(
module attributes {cmf.model = {architecture = "test", hidden = 24, layers = 0, vocab = 20, trained_context = 8}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x20xf32> {
    %e = cmf.weight "embed" : !cmf.weight<20x24, f32>
    %b = cmf.weight "bias" : !cmf.weight<20, f32>
    %w = cmf.weight "low_rank" {source = #cmf.source<file = 0, offset = 0, bytes = 592,
      low_rank = #cmf.low_rank<paths = 2, rank = 16>>, rows = #cmf.rows<of = 40, first = 8, deinterleave = 4>} : !cmf.weight<20x24, blr>
    %x = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<20x24, f32>
    %y = cmf.fused_matmul %x weights(%w) biases(%b) {biased = array<i1: true>}
      : tensor<?x24xf32> weights(!cmf.weight<20x24, blr>) biases(!cmf.weight<20, f32>)
    return %y : tensor<?x20xf32>
  }
}
)";

class LowRankWeights : public WeightSource {
public:
  LowRankWeights() {
    const formats::LowRankShape shape = {2, 16, 40, 24};
    std::mt19937 random(1);
    payload_.resize(formats::kLowRankHeaderBytes);
    payload_[0] = 0x4C;
    payload_[1] = 1;
    payload_[2] = 2;
    formats::store_u32(&payload_[4], 16);
    formats::store_u32(&payload_[8], 40);
    formats::store_u32(&payload_[12], 24);
    for (uint64_t path = 0; path < 2; ++path) {
      const size_t scales = shape.rows + shape.cols + shape.rank, end = payload_.size();
      payload_.resize(end + formats::low_rank_path_bytes(shape));
      for (size_t i = 0; i < scales; ++i) // halves between 1/4 and 2
        formats::store_u16(&payload_[end + 2 * i], static_cast<uint16_t>(0x3400 + random() % 0xc00));
      for (size_t i = end + 2 * scales; i < payload_.size(); ++i)
        payload_[i] = static_cast<uint8_t>(random());
    }
  }

  StatusOr<std::span<const uint8_t>> payload(WeightOp op) override {
    return op.getName().starts_with("low_rank") ? std::span<const uint8_t>(payload_) : *others_.payload(op);
  }

private:
  std::vector<uint8_t> payload_;
  MemoryWeights others_;
};

std::vector<float> evaluate(mlir::ModuleOp module) {
  LowRankWeights weights;
  StatusOr<Interpreter> engine = Interpreter::create(module, weights);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  const std::vector<uint32_t> ids = {5, 0, 19};
  StatusOr<std::span<const float>> logits = engine->forward(ids, /*allLogits=*/true);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return logits.ok() ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
}

TEST(SplitLowRank, KeepsTheValues) {
  mlir::MLIRContext context;
  context.loadDialect<CMFDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context);
  ASSERT_TRUE(module);
  const std::vector<float> whole = evaluate(*module);
  ASSERT_EQ(whole.size(), 60u);
  mlir::PassManager passes(&context);
  passes.addPass(compiler::createCmfSplitLowRank());
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  size_t low_rank = 0, products = 0;
  module->walk([&](WeightOp op) { low_rank += op.getType().getCodec().id == formats::CodecId::kBLR; });
  module->walk([&](FusedMatmulOp) { ++products; });
  EXPECT_EQ(low_rank, 0u);
  EXPECT_EQ(products, 3u); // both first factors together, then the second ones
  const std::vector<float> split = evaluate(*module);
  ASSERT_EQ(split.size(), whole.size());
  // Each step rounds to f32; the sums of 24 and 16 terms are of the size of the largest logit.
  float largest = 0;
  for (float value : whole)
    largest = std::max(largest, std::fabs(value));
  ASSERT_GT(largest, 0.0f);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(split[i], whole[i], 2e-6f * largest) << i;
}

} // namespace
} // namespace cortiq::cmf
