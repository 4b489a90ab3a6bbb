// Verifiers of the operations that move bytes and bits across a vector.

#include "dialects/Vec/IR/VecDialect.h"

using namespace mlir;

namespace cortiq::vec {

static LogicalResult verifyTable(Operation* op) {
  constexpr unsigned kTableBits = 512;
  const unsigned bits = getVectorBits(op->getResult(0).getType());
  if (bits != kTableBits)
    return op->emitOpError("needs ") << kTableBits << " bits, not " << bits;
  return success();
}

LogicalResult LoadRepeatedOp::verify() {
  const unsigned bits = getVectorBits(getType());
  if (bits != 256 && bits != 512)
    return emitOpError("needs 256 or 512 bits, not ") << bits;
  return success();
}
LogicalResult Lookup64Op::verify() {
  return verifyTable(*this);
}
LogicalResult Lookup128Op::verify() {
  return verifyTable(*this);
}

} // namespace cortiq::vec
