#include "dialects/Kernel/IR/OpChecks.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult GateOp::verify() {
  const int64_t width = getX().getType().getElements(), gates = getG().getType().getElements();
  if (width % gates != 0)
    return emitOpError() << "has " << gates << " gates, which do not divide " << width << " elements";
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})))
    return failure();
  return checkSameElements(*this, {getX(), getOut(), getAct()});
}
LogicalResult GateOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

} // namespace cortiq::kernel
