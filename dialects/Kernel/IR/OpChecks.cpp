#include "dialects/Kernel/IR/OpChecks.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult checkVector(Operation* op, SymbolTableCollection& tables, std::optional<FlatSymbolRefAttr> ref,
                          int64_t elements, StringRef what) {
  if (!ref)
    return success();
  FailureOr<WeightOp> w = lookUp<WeightOp>(op, tables, *ref, "weight");
  if (failed(w))
    return failure();
  if (w->getCodec() != "f32" || w->getLayout() != Layout::verbatim || w->getRows() * w->getCols() != uint64_t(elements))
    return op->emitOpError() << what << " must be an f32 vector of " << elements << " values, but " << *ref << " is "
                             << w->getCodec() << " with " << w->getRows() << " x " << w->getCols();
  return success();
}

LogicalResult checkSameElements(Operation* op, ArrayRef<Value> values) {
  std::optional<int64_t> elements;
  for (Value v : values) {
    if (!v)
      continue;
    int64_t n = cast<BufferType>(v.getType()).getElements();
    if (elements && *elements != n)
      return op->emitOpError() << "needs buffers of one length, found " << *elements << " and " << n << " elements";
    elements = n;
  }
  return success();
}

LogicalResult checkSomeOutput(Operation* op, ArrayRef<Value> outputs) {
  for (Value v : outputs)
    if (v)
      return success();
  return op->emitOpError() << "writes nothing: give it an output buffer";
}

LogicalResult checkBuffer(Operation* op, Value v, int64_t elements, StringRef what) {
  int64_t n = cast<BufferType>(v.getType()).getElements();
  if (n != elements)
    return op->emitOpError() << what << " must hold " << elements << " elements, not " << n;
  return success();
}

} // namespace cortiq::kernel
