#include "dialects/CMF/IR/CMF.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace cortiq::cmf {

LogicalResult HadamardOp::verify() {
  const int64_t width = cast<RankedTensorType>(getX().getType()).getDimSize(1), block = getBlock();
  if (block <= 0 || !llvm::isPowerOf2_64(block) || width % block != 0)
    return emitOpError() << "has blocks of " << block << ", no power of two that divides " << width << " features";
  if (static_cast<int64_t>(getNegative().size()) != width)
    return emitOpError() << "has " << getNegative().size() << " signs for " << width << " features";
  return success();
}

} // namespace cortiq::cmf
