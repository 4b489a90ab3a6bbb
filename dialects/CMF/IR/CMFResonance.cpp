#include "dialects/CMF/IR/CMF.h"

using namespace mlir;

namespace cortiq::cmf {

LogicalResult ResonanceOp::verify() {
  const int64_t width = cast<RankedTensorType>(getX().getType()).getDimSize(1);
  const int64_t experts = cast<RankedTensorType>(getResult().getType()).getDimSize(1);
  auto count = [](OperandRange list) { return static_cast<int64_t>(list.size()); };
  if (count(getMeans()) != experts || count(getBiases()) != experts ||
      (!getBases().empty() && count(getBases()) != experts) || count(getShells()) > experts)
    return emitOpError() << "has " << count(getMeans()) << " means, " << count(getBases()) << " bases, "
                         << count(getBiases()) << " biases and " << count(getShells()) << " shells for " << experts
                         << " experts";
  for (Value mean : getMeans())
    if (cast<WeightType>(mean.getType()).getCols() != width)
      return emitOpError() << "takes " << width << " features, but has a mean " << mean.getType();
  for (Value basis : getBases())
    if (auto type = cast<WeightType>(basis.getType());
        type.getCols() != width || type.getRows() > width ||
        type.getRows() != cast<WeightType>(getBases()[0].getType()).getRows())
      return emitOpError() << "takes " << width << " features, but has a basis " << type << " beside "
                           << getBases()[0].getType();
  for (OperandRange numbers : {getBiases(), getShells()})
    for (Value number : numbers)
      if (cast<WeightType>(number.getType()).getCols() != 1)
        return emitOpError() << "takes one number an expert, not " << number.getType();
  return success();
}

} // namespace cortiq::cmf
