#include "compiler/emit/rows/rows.h"

using namespace mlir;

namespace cortiq::compiler {

artifact::ResonanceOpT rowOf(kernel::ResonanceOp op, const ProgramNumbers& numbers) {
  auto weights = [&](std::optional<ArrayAttr> symbols) {
    std::vector<uint32_t> list;
    for (Attribute symbol : symbols ? symbols->getValue() : ArrayRef<Attribute>())
      list.push_back(numbers.weight(cast<FlatSymbolRefAttr>(symbol).getValue()));
    return list;
  };
  artifact::ResonanceOpT r;
  r.input = numbers.slot(op.getX());
  r.out = numbers.slot(op.getOut());
  r.means = weights(op.getMeans());
  r.bases = weights(op.getBases());
  r.biases = weights(op.getBiases());
  r.shells = weights(op.getShells());
  r.rank = op.getRank();
  return r;
}

} // namespace cortiq::compiler
