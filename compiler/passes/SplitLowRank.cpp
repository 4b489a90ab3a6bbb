// cmf-split-low-rank: x * W, W = sum of paths U V -> (x * V) * U for each path.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFSPLITLOWRANK
#include "compiler/passes/Passes.h.inc"

namespace {

using cmf::FusedMatmulOp;

cmf::WeightOp lowRankWeight(Value weight) {
  auto op = weight.getDefiningOp<cmf::WeightOp>();
  return op && op.getType().getCodec().id == formats::CodecId::kBLR ? op : cmf::WeightOp();
}

/// "a.b.q_proj.weight" -> "a.b.q_proj_v1.weight".
std::string factorName(StringRef name, StringRef factor, int64_t path) {
  constexpr StringLiteral kEnd = ".weight";
  const bool ends = name.ends_with(kEnd);
  return (name.drop_back(ends ? kEnd.size() : 0) + "_" + factor + Twine(path) + (ends ? kEnd : "")).str();
}

/// The factor `codec` of path `path` (from 1) of a blr weight; blr_u takes the rows that the whole takes.
Value factor(OpBuilder& builder, cmf::WeightOp whole, formats::CodecId codec, int64_t path) {
  const cmf::SourceAttr source = whole.getSourceAttr();
  const cmf::LowRankAttr lowRank = source.getLowRank();
  const bool isU = codec == formats::CodecId::kBLRU;
  const int64_t shape[] = {isU ? whole.getType().getRows() : lowRank.getRank(),
                           isU ? lowRank.getRank() : whole.getType().getCols()};
  MLIRContext* context = builder.getContext();
  return builder.create<cmf::WeightOp>(
      whole.getLoc(), cmf::WeightType::get(context, shape, codec), factorName(whole.getName(), isU ? "u" : "v", path),
      cmf::SourceAttr::get(context, source.getFile(), source.getOffset(), source.getBytes(),
                           cmf::LowRankAttr::get(context, lowRank.getPaths(), lowRank.getRank(), path)),
      isU ? whole.getRowsAttr() : cmf::RowsAttr());
}

LogicalResult split(RewriterBase& rewriter, FusedMatmulOp op) {
  SmallVector<cmf::WeightOp> wholes; // one a part, null for weights that stay
  for (Value weight : op.getWeights()) {
    wholes.push_back(lowRankWeight(weight));
    if (cmf::WeightOp whole = wholes.back(); whole && !(whole.getSourceAttr() && whole.getSourceAttr().getLowRank()))
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
      weights.push_back(factor(rewriter, whole, formats::CodecId::kBLRV, path));
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
      Value u = factor(rewriter, whole, formats::CodecId::kBLRU, path);
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
