#include "dialects/CMF/IR/CMF.h"

using namespace mlir;

namespace cortiq::cmf {

LogicalResult GateOp::verify() {
  const int64_t width = cast<RankedTensorType>(getX().getType()).getDimSize(1);
  const int64_t gates = cast<RankedTensorType>(getG().getType()).getDimSize(1);
  if (gates <= 0 || width % gates != 0)
    return emitOpError() << "has " << gates << " gates, which do not divide " << width << " features";
  return success();
}

} // namespace cortiq::cmf
