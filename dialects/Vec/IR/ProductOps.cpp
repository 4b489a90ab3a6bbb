// Verifiers of the ops in ProductOps.td.

#include "dialects/Vec/IR/VecDialect.h"

using namespace mlir;
using namespace cortiq::vec;

namespace {

/// Four bytes of an operand make one lane of the result.
LogicalResult verifyFourToOne(Operation* op, Type bytes, Type words) {
  if (cast<VectorType>(bytes).getNumElements() == 4 * cast<VectorType>(words).getNumElements())
    return success();
  return op->emitOpError("has 4 bytes of an operand to a lane of the result, but goes from ")
         << bytes << " to " << words;
}

} // namespace

LogicalResult SignedDot4Op::verify() {
  return verifyFourToOne(*this, getLhs().getType(), getType());
}

LogicalResult Dot8PairsOp::verify() {
  if (getVectorBits(getType()) != 128)
    return emitOpError("takes vectors of 128 bits");
  return verifyFourToOne(*this, getLhs().getType(), getType());
}

LogicalResult PackBf16Op::verify() {
  auto result = cast<VectorType>(getResult().getType());
  if (!result.getElementType().isBF16() ||
      result.getNumElements() != 2 * cast<VectorType>(getLow().getType()).getNumElements())
    return emitOpError("makes one vector of bf16 of two of f32");
  return success();
}

LogicalResult InterleaveOp::verify() {
  if (getBytes() != 4 && getBytes() != 8)
    return emitOpError("takes groups of 4 or 8 bytes, not ") << getBytes();
  if (getVectorBits(getType()) / 8 < 2 * getBytes())
    return emitOpError("needs two groups in a vector");
  return success();
}
