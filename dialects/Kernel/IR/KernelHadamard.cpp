#include "dialects/Kernel/IR/OpChecks.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult HadamardOp::verify() {
  const int64_t width = getX().getType().getElements();
  if (width % static_cast<int64_t>(getBlock()) != 0 || static_cast<int64_t>(getNegative().size()) != width)
    return emitOpError() << "has blocks of " << getBlock() << " and " << getNegative().size() << " signs for " << width
                         << " elements";
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})))
    return failure();
  return checkSameElements(*this, {getX(), getOut(), getAct()});
}
LogicalResult HadamardOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

} // namespace cortiq::kernel
