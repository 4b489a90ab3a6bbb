// cmf-fuse-norm-residual: add -> the residual of a fused_matmul, or add_rms_norm.

#include "compiler/passes/MergeMatmuls.h"
#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"
#include "mlir/IR/PatternMatch.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFFUSENORMRESIDUAL
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

// The product gives its rows, the other summand joins them in the epilogue. The new operation stands where the sum
// stood, so that the residual is defined before it.
bool addIntoProduct(RewriterBase& rewriter, cmf::AddOp add) {
  for (auto [summand, other] : {std::pair(add.getB(), add.getA()), std::pair(add.getA(), add.getB())}) {
    auto product = summand.getDefiningOp<cmf::FusedMatmulOp>();
    if (!product || product.getWeights().size() != 1 || product.getResidual() || !summand.hasOneUse())
      continue;
    rewriter.setInsertionPoint(add);
    rewriter.replaceOpWithNewOp<cmf::FusedMatmulOp>(add, product.getX(), product.getWeights(), product.getBiasOf(0),
                                                    other, product.getArmAttr());
    rewriter.eraseOp(product);
    return true;
  }
  return false;
}

void addIntoNorm(RewriterBase& rewriter, cmf::AddOp add) {
  // Of several norms the first: a block that guesses reads the stream behind the head.
  cmf::RmsNormOp norm;
  for (Operation* user : add->getUsers()) {
    auto candidate = dyn_cast<cmf::RmsNormOp>(user);
    if (candidate && candidate.getWeight() && !candidate.getGroup() && candidate->getBlock() == add->getBlock() &&
        (!norm || candidate->isBeforeInBlock(norm)))
      norm = candidate;
  }
  if (!norm)
    return;
  hoistWeight(rewriter, norm.getWeight(), add);
  rewriter.setInsertionPoint(add);
  auto fused = rewriter.create<cmf::AddRmsNormOp>(norm.getLoc(), add.getA(), add.getB(), norm.getWeight(),
                                                  norm.getEpsAttr(), norm.getUnitOffsetAttr());
  rewriter.replaceOp(norm, fused.getNormed());
  rewriter.replaceOp(add, fused.getSum());
}

struct Pass : impl::CmfFuseNormResidualBase<Pass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<cmf::AddOp> adds;
    getOperation().walk([&](cmf::AddOp add) { adds.push_back(add); });
    for (cmf::AddOp add : adds)
      if (!addIntoProduct(rewriter, add))
        addIntoNorm(rewriter, add);
  }
};

} // namespace
} // namespace cortiq::compiler
