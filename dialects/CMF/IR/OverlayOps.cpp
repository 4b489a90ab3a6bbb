// Verifiers of the operations in Overlay.td.

#include "dialects/CMF/IR/CMF.h"

using namespace mlir;

namespace cortiq::cmf {

LogicalResult OverlayOp::verify() {
  if (getSkills().size() != getAlternatives().size())
    return emitOpError() << "has " << getAlternatives().size() << " alternatives of " << getSkills().size()
                         << " skills";
  if (getAlternatives().empty())
    return emitOpError("has no alternative, so the base itself does");
  if (getResult().getType() != getBase().getType())
    return emitOpError() << "must be of its base's type " << getBase().getType();
  for (auto [i, alternative] : llvm::enumerate(getAlternatives())) {
    const auto type = cast<WeightType>(alternative.getType());
    if (type.getShape() != cast<WeightType>(getBase().getType()).getShape())
      return emitOpError() << "replaces " << getBase().getType() << " by another shape, " << type;
    if (getSkills()[i] < 0 || llvm::is_contained(getSkills().take_front(i), getSkills()[i]))
      return emitOpError() << "names skill " << getSkills()[i] << " twice, or none by it";
  }
  return success();
}

Value OverlayOp::getAlternativeOf(int64_t skill) {
  for (auto [i, index] : llvm::enumerate(getSkills()))
    if (index == skill)
      return getAlternatives()[i];
  return {};
}

LogicalResult LayerGateOp::verify() {
  return static_cast<int64_t>(getLayer()) >= 0 ? success() : emitOpError("needs a layer");
}

LogicalResult PlaceOp::verify() {
  const int64_t columns = getX().getType().getDimSize(1), width = getResult().getType().getDimSize(1);
  if (static_cast<int64_t>(getFrom().size()) != width)
    return emitOpError() << "says of " << getFrom().size() << " columns where they come from, its result has " << width;
  for (int64_t from : getFrom())
    if (from < -1 || from >= columns)
      return emitOpError() << "takes column " << from << " of " << columns;
  return success();
}

LogicalResult TapOp::verify() {
  return static_cast<int64_t>(getLayer()) >= 0 ? success() : emitOpError("needs a layer");
}

} // namespace cortiq::cmf
