// cmf-split-low-rank: x * W, W = sum of paths U V -> (x * V) * U for each path.

#include "compiler/passes/LowRank.h"
#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFSPLITLOWRANK
#include "compiler/passes/Passes.h.inc"

namespace {

using cmf::FusedMatmulOp;

LogicalResult split(RewriterBase& rewriter, FusedMatmulOp op) {
  SmallVector<cmf::WeightOp> wholes; // one a part, null for weights that stay
  for (Value weight : op.getWeights()) {
    wholes.push_back(lowRankWeight(weight));
    if (cmf::WeightOp whole = wholes.back(); whole && !knowsItsRank(whole))
      return whole.emitOpError() << "is low-rank, but its source does not say of what rank";
  }
  // All that multiplies x, in one product: the weights that stay, with their biases, then the first factors.
  rewriter.setInsertionPoint(op);
  SmallVector<Value> weights, biases;
  for (auto [i, whole] : llvm::enumerate(wholes)) {
    if (!whole) {
      weights.push_back(op.getWeights()[i]);
      biases.push_back(op.getBiasOf(i));
      continue;
    }
    for (int64_t path = 1; path <= whole.getSourceAttr().getLowRank().getPaths(); ++path) {
      weights.push_back(lowRankFactor(rewriter, whole, formats::CodecId::kBLRV, path));
      biases.push_back(Value());
    }
  }
  // A residual belongs to a product of one weight, which is low-rank here.
  auto first = rewriter.create<FusedMatmulOp>(op.getLoc(), op.getX(), weights, biases, Value(), op.getArmAttr());
  SmallVector<Value> results;
  auto part = first.getParts().begin();
  for (auto [i, whole] : llvm::enumerate(wholes)) {
    if (!whole) {
      results.push_back(*part++);
      continue;
    }
    Value bias = op.getBiasOf(i), sum = op.getResidual();
    for (int64_t path = 1; path <= whole.getSourceAttr().getLowRank().getPaths(); ++path) {
      Value u = lowRankFactor(rewriter, whole, formats::CodecId::kBLRU, path);
      sum = rewriter.create<FusedMatmulOp>(op.getLoc(), *part++, u, bias, sum, op.getArmAttr()).getParts()[0];
      bias = Value();
    }
    results.push_back(sum);
  }
  rewriter.replaceOp(op, results);
  for (cmf::WeightOp whole : wholes)
    if (whole && whole->use_empty())
      rewriter.eraseOp(whole);
  return success();
}

class SplitLowRank : public impl::CmfSplitLowRankBase<SplitLowRank> {
public:
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<FusedMatmulOp> products;
    getOperation().walk([&](FusedMatmulOp op) {
      if (llvm::any_of(op.getWeights(), lowRankWeight))
        products.push_back(op);
    });
    for (FusedMatmulOp op : products)
      if (failed(split(rewriter, op)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace cortiq::compiler
