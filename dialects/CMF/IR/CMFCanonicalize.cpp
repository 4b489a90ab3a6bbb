// Simplifications that hold for every model: constant factors fold together.

#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace cortiq::cmf {

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  if (getFactor().convertToDouble() == 1.0)
    return getX();
  return {};
}

namespace {

// embed * c -> embed with a scale of its own, when nobody else reads the unscaled rows. Only exact where the embedding
// has no scale yet: two roundings would become one.
struct ScaleIntoEmbed : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp op, PatternRewriter& rewriter) const override {
    auto embed = op.getX().getDefiningOp<EmbedOp>();
    if (!embed || !embed->hasOneUse() || embed.getScale().convertToDouble() != 1.0)
      return failure();
    rewriter.replaceOpWithNewOp<EmbedOp>(op, embed.getIds(), embed.getWeight(), op.getFactorAttr());
    return success();
  }
};

} // namespace

void ScaleOp::getCanonicalizationPatterns(RewritePatternSet& patterns, MLIRContext* context) {
  patterns.add<ScaleIntoEmbed>(context);
}

} // namespace cortiq::cmf
