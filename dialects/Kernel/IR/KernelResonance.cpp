#include "dialects/Kernel/IR/OpChecks.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult ResonanceOp::verify() {
  const size_t experts = getOut().getType().getElements(), bases = getBases() ? getBases()->size() : 0,
               shells = getShells() ? getShells()->size() : 0;
  if (getMeans().size() != experts || getBiases().size() != experts || shells > experts ||
      bases != (getRank() == 0 ? 0 : experts))
    return emitOpError() << "has " << getMeans().size() << " means, " << bases << " bases of rank " << getRank() << ", "
                         << getBiases().size() << " biases and " << shells << " shells for " << experts << " experts";
  return success();
}
LogicalResult ResonanceOp::verifySymbolUses(SymbolTableCollection& tables) {
  const int64_t width = getX().getType().getElements();
  auto check = [&](std::optional<ArrayAttr> list, int64_t elements, StringRef what) {
    for (Attribute entry : list ? list->getValue() : ArrayRef<Attribute>())
      if (failed(checkVector(*this, tables, cast<FlatSymbolRefAttr>(entry), elements, what)))
        return failure();
    return success();
  };
  return success(succeeded(check(getMeans(), width, "a mean")) &&
                 succeeded(check(getBases(), width * static_cast<int64_t>(getRank()), "a basis")) &&
                 succeeded(check(getBiases(), 1, "a bias")) && succeeded(check(getShells(), 1, "a shell")));
}

} // namespace cortiq::kernel
