// Verifiers of the operations on heads.

#include "dialects/Kernel/IR/KernelDialect.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult ConcatHeadsOp::verify() {
  const uint64_t heads = getHeads(), out = getOut().getType().getElements(), b = getB().getType().getElements(),
                 a = getA().getType().getElements();
  if (b % heads == 0 && (a * heads + b == out || (a % heads == 0 && a + b == out)))
    return success();
  return emitOpError() << "cannot make " << out << " features of " << heads << " heads from " << a << " and " << b;
}

LogicalResult ClusterLogitsOp::verify() {
  const uint64_t logits = getLogits().getType().getElements(), clusters = getClusters().getType().getElements();
  if (logits % clusters != 0)
    return emitOpError() << "has " << clusters << " clusters, which do not divide " << logits << " logits";
  return success();
}

} // namespace cortiq::kernel
