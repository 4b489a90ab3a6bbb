// cmf-fuse-dequant-matmul: dequant, matmul and bias_add -> fused_matmul.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFFUSEDEQUANTMATMUL
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

struct FuseDequant : OpRewritePattern<cmf::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(cmf::MatmulOp op, PatternRewriter& rewriter) const override {
    auto dequant = op.getMatrix().getDefiningOp<cmf::DequantOp>();
    if (!dequant)
      return failure();
    rewriter.replaceOpWithNewOp<cmf::FusedMatmulOp>(op, op.getX(), ValueRange{dequant.getWeight()}, Value(), Value());
    return success();
  }
};

struct FuseBias : OpRewritePattern<cmf::BiasAddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(cmf::BiasAddOp op, PatternRewriter& rewriter) const override {
    auto product = op.getX().getDefiningOp<cmf::FusedMatmulOp>();
    // The epilogue adds the bias before the residual; a product that has either is complete.
    if (!product || product.getWeights().size() != 1 || product.getResidual() || !product.getBiases().empty() ||
        !product->hasOneUse())
      return failure();
    rewriter.replaceOpWithNewOp<cmf::FusedMatmulOp>(op, product.getX(), product.getWeights(), op.getBias(), Value(),
                                                    product.getArmAttr());
    return success();
  }
};

struct Pass : impl::CmfFuseDequantMatmulBase<Pass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseDequant, FuseBias>(&getContext());
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace cortiq::compiler
