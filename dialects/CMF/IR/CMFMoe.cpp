// What a mixture of experts has to hold together.

#include <cmath>

#include "dialects/CMF/IR/CMF.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

// Far beyond every model.
constexpr int64_t kMaxExperts = 65536;

int64_t features(Value activations) {
  return cast<RankedTensorType>(activations.getType()).getDimSize(1);
}

WeightType weightType(Value weight) {
  return cast<WeightType>(weight.getType());
}

LogicalResult verifyPerExpert(Operation* op, StringRef what, Value vector, int64_t experts) {
  if (!vector || weightType(vector).getCols() == experts)
    return success();
  return op->emitOpError() << "has " << what << " " << vector.getType() << " with " << weightType(vector).getCols()
                           << " values for " << experts << " experts";
}

LogicalResult verifyRouting(Operation* op, RoutingAttr routing, int64_t experts) {
  if (experts < 1 || experts > kMaxExperts)
    return op->emitOpError() << "routes to " << experts << " experts, not within 1 and " << kMaxExperts;
  if (experts % routing.getGroups() != 0)
    return op->emitOpError() << "has " << experts << " experts, which do not form " << routing.getGroups()
                             << " groups of one size";
  const int64_t open = experts / routing.getGroups() * routing.getGroupsUsed();
  if (routing.getTopK() > open)
    return op->emitOpError() << "chooses " << routing.getTopK() << " of " << open << " experts";
  return success();
}

/// The three weights of every expert, with their biases.
struct ExpertLists {
  OperandRange gates, ups, downs, gateBiases, upBiases, downBiases;
};

LogicalResult verifyExperts(Operation* op, const ExpertLists& experts, int64_t width) {
  const size_t count = experts.gates.size();
  if (count == 0 || experts.ups.size() != count || experts.downs.size() != count)
    return op->emitOpError() << "has " << count << " gates, " << experts.ups.size() << " ups and "
                             << experts.downs.size() << " downs; each expert needs one of each";
  for (const OperandRange& biases : {experts.gateBiases, experts.upBiases, experts.downBiases})
    if (!biases.empty() && biases.size() != count)
      return op->emitOpError() << "has " << biases.size() << " biases of one kind for " << count << " experts";
  for (size_t e = 0; e < count; ++e) {
    const WeightType gate = weightType(experts.gates[e]), up = weightType(experts.ups[e]),
                     down = weightType(experts.downs[e]);
    if (gate.getCols() != width || up.getCols() != width || down.getRows() != width || up.getRows() != gate.getRows() ||
        down.getCols() != gate.getRows())
      return op->emitOpError() << "takes " << width << " features, but expert " << e << " has gate " << gate << ", up "
                               << up << " and down " << down;
    auto fits = [&](const OperandRange& biases, int64_t rows) {
      return biases.empty() || weightType(biases[e]).getCols() == rows;
    };
    if (!fits(experts.gateBiases, gate.getRows()) || !fits(experts.upBiases, gate.getRows()) ||
        !fits(experts.downBiases, width))
      return op->emitOpError() << "has a bias for expert " << e << " that is not as long as its rows";
  }
  return success();
}

} // namespace

LogicalResult RoutingAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t topK, Scoring,
                                  FloatAttr normEpsilon, FloatAttr normMinimum, FloatAttr scale, int64_t groups,
                                  int64_t groupsUsed) {
  if (topK < 1 || topK > kMaxExperts)
    return emitError() << "'top_k' must be within 1 and " << kMaxExperts << ", not " << topK;
  if (normEpsilon && normMinimum)
    return emitError() << "the sum is divided by with 'norm_epsilon' or with 'norm_minimum', not with both";
  for (FloatAttr number : {normEpsilon, normMinimum})
    if (number && !(number.getValueAsDouble() >= 0 && std::isfinite(number.getValueAsDouble())))
      return emitError() << "'norm_epsilon' and 'norm_minimum' are numbers of at least 0";
  if (scale && !std::isfinite(scale.getValueAsDouble()))
    return emitError() << "'scale' is not finite";
  if (groups < 1 || groups > kMaxExperts || groupsUsed < 1 || groupsUsed > groups)
    return emitError() << "uses " << groupsUsed << " of " << groups << " groups";
  return success();
}

LogicalResult MoeRouteOp::verify() {
  const int64_t experts = features(getLogits());
  if (failed(verifyRouting(*this, getRouting(), experts)) ||
      failed(verifyPerExpert(*this, "a bias", getBias(), experts)) ||
      failed(verifyPerExpert(*this, "scales", getExpertScales(), experts)))
    return failure();
  for (Value result : {getIds(), getWeights()})
    if (features(result) != getRouting().getTopK())
      return emitOpError() << "chooses " << getRouting().getTopK() << " experts, but gives " << result.getType();
  return success();
}

LogicalResult MoeExpertsOp::verify() {
  if (features(getIds()) != features(getWeights()))
    return emitOpError() << "has " << getIds().getType() << " choices, but " << getWeights().getType() << " weights";
  return verifyExperts(*this, {getGates(), getUps(), getDowns(), getGateBiases(), getUpBiases(), getDownBiases()},
                       features(getX()));
}

LogicalResult FusedMoeOp::verify() {
  const int64_t experts = getGates().size(), width = features(getX());
  if (failed(verifyExperts(*this, {getGates(), getUps(), getDowns(), getGateBiases(), getUpBiases(), getDownBiases()},
                           width)))
    return failure();
  if (!getRouter() && (features(getRouterX()) != experts || getRouterBias()))
    return emitOpError() << "has no router, so that it takes one logit of each of " << experts << " experts, not "
                         << getRouterX().getType() << (getRouterBias() ? " with a bias" : "");
  const WeightType router = getRouter() ? weightType(getRouter()) : WeightType();
  if (router && (router.getRows() != experts || router.getCols() != features(getRouterX())))
    return emitOpError() << "has a router " << router << " for " << experts << " experts and " << features(getRouterX())
                         << " features";
  if (failed(verifyRouting(*this, getRouting(), experts)) ||
      failed(verifyPerExpert(*this, "a router bias", getRouterBias(), experts)) ||
      failed(verifyPerExpert(*this, "a bias", getBias(), experts)) ||
      failed(verifyPerExpert(*this, "scales", getExpertScales(), experts)))
    return failure();
  if (!getShared().empty()) {
    if (getShared().size() != 3)
      return emitOpError() << "has a shared expert of " << getShared().size() << " weights, not gate, up and down";
    const WeightType gate = weightType(getShared()[0]), up = weightType(getShared()[1]),
                     down = weightType(getShared()[2]);
    if (gate.getCols() != width || up.getCols() != width || down.getRows() != width || up.getRows() != gate.getRows() ||
        down.getCols() != gate.getRows())
      return emitOpError() << "takes " << width << " features, but its shared expert has gate " << gate << ", up " << up
                           << " and down " << down;
  }
  if (getSharedGate()) {
    const WeightType gate = weightType(getSharedGate());
    if (getShared().empty() || gate.getRows() != 1 || gate.getCols() != width)
      return emitOpError() << "has a shared gate " << gate << ", not 1 x " << width << " beside a shared expert";
  }
  if (getResidual() && getResidual().getType() != getX().getType())
    return emitOpError() << "residual " << getResidual().getType() << " differs from the result " << getX().getType();
  return success();
}

} // namespace cortiq::cmf
