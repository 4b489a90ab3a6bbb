// Verifiers of the operations on heads.

#include "dialects/CMF/IR/CMF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

int64_t features(Value v) {
  return cast<RankedTensorType>(v.getType()).getDimSize(1);
}

RankedTensorType withFeatures(Value x, int64_t count) {
  auto type = cast<RankedTensorType>(x.getType());
  return RankedTensorType::get({type.getDimSize(0), count}, type.getElementType());
}

} // namespace

void ConcatHeadsOp::build(OpBuilder& builder, OperationState& state, Value a, Value b, int64_t heads, bool shared) {
  build(builder, state, withFeatures(a, features(a) * (shared ? heads : 1) + features(b)), a, b,
        builder.getI64IntegerAttr(heads), shared ? builder.getUnitAttr() : UnitAttr());
}

LogicalResult ConcatHeadsOp::verify() {
  const int64_t heads = getHeads();
  if (heads <= 0)
    return emitOpError("'heads' must be positive");
  if (features(getB()) % heads != 0 || (!getShared() && features(getA()) % heads != 0))
    return emitOpError() << "has " << heads << " heads, which do not divide " << features(getA()) << " and "
                         << features(getB()) << " features";
  if (getResult().getType() != withFeatures(getA(), features(getA()) * (getShared() ? heads : 1) + features(getB())))
    return emitOpError() << "cannot give " << getResult().getType() << " from " << getA().getType() << " and "
                         << getB().getType();
  return success();
}

WeightType HeadMatmulOp::getWeightType(unsigned head) {
  return cast<WeightType>(getWeights()[head].getType());
}

LogicalResult HeadMatmulOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor adaptor,
                                             SmallVectorImpl<Type>& types) {
  if (adaptor.getWeights().empty())
    return failure();
  auto first = dyn_cast<WeightType>(adaptor.getWeights()[0].getType());
  auto x = dyn_cast<RankedTensorType>(adaptor.getX().getType());
  if (!first || !x || x.getRank() != 2)
    return failure();
  types.push_back(withFeatures(adaptor.getX(), first.getRows() * static_cast<int64_t>(adaptor.getWeights().size())));
  return success();
}

LogicalResult HeadMatmulOp::verify() {
  const int64_t heads = getWeights().size();
  const WeightType first = getWeightType(0);
  for (int64_t h = 1; h < heads; ++h)
    if (getWeightType(h).getShape() != first.getShape())
      return emitOpError() << "needs weights of one shape, found " << first << " and " << getWeightType(h);
  if (features(getX()) != heads * first.getCols())
    return emitOpError() << "takes " << features(getX()) << " features, but its " << heads << " weights have "
                         << first.getCols() << " columns each";
  return success();
}

LogicalResult ClusterLogitsOp::verify() {
  if (features(getLogits()) % features(getClusters()) != 0)
    return emitOpError() << "has " << features(getClusters()) << " clusters, which do not divide "
                         << features(getLogits()) << " logits";
  return success();
}

} // namespace cortiq::cmf
