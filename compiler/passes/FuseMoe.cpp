// cmf-fuse-moe: router, choice, experts, shared expert and residual of a layer -> one fused_moe.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/OverlayCatalog.h"
#include "mlir/IR/PatternMatch.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFFUSEMOE
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

/// The product of one weight without bias or residual that gives `value` and has no other reader. Low-rank weights are
/// left to cmf-split-low-rank.
cmf::FusedMatmulOp plainProduct(Value value) {
  auto product = value.getDefiningOp<cmf::FusedMatmulOp>();
  return product && product.getWeights().size() == 1 && product.getBiases().empty() && !product.getResidual() &&
                 value.hasOneUse() && product.getWeightType(0).getCodec().id != formats::CodecId::kBLR
             ? product
             : cmf::FusedMatmulOp();
}

/// The weights of a shared expert on `x`.
struct SharedExpert {
  SmallVector<Value> weights;
  Value gate;
};

/// The shared expert beside `experts` that gives `value`, if it is one: a gated block without biases, perhaps behind a
/// gate of one value a token.
std::optional<SharedExpert> sharedExpert(Value value, cmf::MoeExpertsOp experts) {
  Value x = experts.getX();
  SharedExpert shared;
  if (auto gate = value.getDefiningOp<cmf::GateOp>()) {
    cmf::FusedMatmulOp product = plainProduct(gate.getG());
    if (!product || product.getX() != x || product.getWeightType(0).getRows() != 1 || !value.hasOneUse() ||
        gate.getFunction() != cmf::GateFunction::sigmoid)
      return std::nullopt;
    shared.gate = product.getWeights()[0];
    value = gate.getX();
  }
  cmf::FusedMatmulOp down = plainProduct(value);
  auto glu = down ? down.getX().getDefiningOp<cmf::GluOp>() : cmf::GluOp();
  if (!glu || !glu->hasOneUse() || glu.getActivation() != experts.getActivation() ||
      glu.getAlphaAttr() != experts.getAlphaAttr() || glu.getLimitAttr() != experts.getLimitAttr())
    return std::nullopt;
  for (Value half : {glu.getGate(), glu.getUp()}) {
    cmf::FusedMatmulOp product = plainProduct(half);
    if (!product || product.getX() != x)
      return std::nullopt;
    shared.weights.push_back(product.getWeights()[0]);
  }
  shared.weights.push_back(down.getWeights()[0]);
  return shared;
}

/// The sum that alone reads `value`, and its other summand.
std::pair<cmf::AddOp, Value> onlySum(Value value) {
  if (!value.hasOneUse())
    return {};
  auto add = dyn_cast<cmf::AddOp>(*value.user_begin());
  if (!add)
    return {};
  return {add, add.getA() == value ? add.getB() : add.getA()};
}

void fuse(RewriterBase& rewriter, cmf::MoeExpertsOp experts) {
  auto route = experts.getIds().getDefiningOp<cmf::MoeRouteOp>();
  if (!route || experts.getWeights() != route.getWeights() || !route.getIds().hasOneUse() ||
      !route.getWeights().hasOneUse())
    return;
  auto router = route.getLogits().getDefiningOp<cmf::FusedMatmulOp>();
  if (!router && !route.getLogits().getDefiningOp<cmf::ResonanceOp>())
    return;
  if (router && (router.getWeights().size() != 1 || router.getResidual() || !route.getLogits().hasOneUse()))
    return;
  Operation* last = experts;
  std::optional<SharedExpert> shared;
  if (auto [add, other] = onlySum(experts.getResult()); add) {
    shared = sharedExpert(other, experts);
    if (shared)
      last = add;
  }
  Value residual;
  if (auto [add, other] = onlySum(last->getResult(0)); add) {
    residual = other;
    last = add;
  }
  rewriter.setInsertionPoint(last);
  auto fused = rewriter.create<cmf::FusedMoeOp>(
      rewriter.getFusedLoc({route.getLogits().getLoc(), experts.getLoc()}), experts.getResult().getType(),
      experts.getX(), router ? router.getX() : route.getLogits(), router ? router.getWeights()[0] : Value(),
      router ? router.getBiasOf(0) : Value(), route.getBias(), route.getExpertScales(), experts.getGates(),
      experts.getUps(), experts.getDowns(), experts.getGateBiases(), experts.getUpBiases(), experts.getDownBiases(),
      shared ? ValueRange(shared->weights) : ValueRange(), shared ? shared->gate : Value(), residual,
      experts.getActivationAttr(), route.getRoutingAttr(), router ? router.getArmAttr() : cmf::ArmAttr(),
      experts.getAlphaAttr(), experts.getLimitAttr());
  if (Attribute mask = route->getAttr(cmf::kMaskAttr))
    fused->setAttr(cmf::kMaskAttr, mask);
  rewriter.replaceOp(last, fused);
}

struct Pass : impl::CmfFuseMoeBase<Pass> {
  void runOnOperation() override {
    SmallVector<cmf::MoeExpertsOp> all;
    getOperation().walk([&](cmf::MoeExpertsOp experts) { all.push_back(experts); });
    IRRewriter rewriter(&getContext());
    for (cmf::MoeExpertsOp experts : all)
      fuse(rewriter, experts);
    // What went into the fused operations has no readers any more.
    getOperation().walk([&](func::FuncOp function) {
      for (Operation& op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
        if (isOpTriviallyDead(&op))
          rewriter.eraseOp(&op);
    });
  }
};

} // namespace
} // namespace cortiq::compiler
