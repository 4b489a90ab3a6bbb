#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerResonance(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ResonanceOp>(operation);
  auto vectors = [&](OperandRange weights) {
    SmallVector<Attribute> symbols;
    for (Value weight : weights)
      symbols.push_back(lowering.tables().vector(weightOf(weight)));
    return symbols.empty() ? ArrayAttr() : lowering.builder().getArrayAttr(symbols);
  };
  const int64_t rank = op.getBases().empty() ? 0 : cast<cmf::WeightType>(op.getBases()[0].getType()).getRows();
  Value x = lowering.f32Of(op.getX()), out = lowering.newF32(op.getResult());
  lowering.nameOf({weightOf(op.getMeans()[0])});
  lowering.stage(op, lowering.inLayer("resonance"), [&] {
    lowering.builder().create<kernel::ResonanceOp>(op.getLoc(), x, vectors(op.getMeans()), vectors(op.getBases()),
                                                   vectors(op.getBiases()), vectors(op.getShells()), out,
                                                   lowering.i64Attr(rank));
  });
  return success();
}

} // namespace cortiq::compiler
