// Verifiers of the operations in Overlay.td.

#include "dialects/Kernel/IR/KernelDialect.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult ChooseOp::verify() {
  if (getCases().size() != getAlternatives().size() || getCases().empty())
    return emitOpError() << "has " << getAlternatives().size() << " alternatives for " << getCases().size() << " cases";
  for (auto [i, skill] : llvm::enumerate(getCases()))
    if (skill < -1 || llvm::is_contained(getCases().take_front(i), skill))
      return emitOpError() << "has case " << skill << " twice, or one that is no skill";
  for (Region* region : getRegions()) {
    const bool base = region == &getBase();
    const size_t calls = region->empty() ? 0 : llvm::range_size(region->front());
    if (calls > 1 || (calls == 0 && !base))
      return emitOpError() << "needs one call in each region, and has one with " << calls;
  }
  return success();
}

LogicalResult LayerGateOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}
LogicalResult PlaceOp::verify() {
  if (!getOut() && !getAct())
    return emitOpError("writes nothing: give it an output buffer");
  for (Value out : {Value(getOut()), Value(getAct())})
    if (out && cast<BufferType>(out.getType()).getElements() != static_cast<int64_t>(getFrom().size()))
      return emitOpError() << "places " << getFrom().size() << " columns into a buffer of another length";
  for (int64_t from : getFrom())
    if (from < -1 || from >= getInput().getType().getElements())
      return emitOpError() << "takes column " << from << " of " << getInput().getType().getElements();
  return success();
}
LogicalResult PlaceOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

LogicalResult TapOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

} // namespace cortiq::kernel
