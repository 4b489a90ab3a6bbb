#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerEmbed(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::EmbedOp>(operation);
  Value out = lowering.newF32(op.getResult());
  cmf::WeightOp weight = weightOf(op.getWeight());
  lowering.stage(op, lowering.nameOf({weight}), [&] {
    lowering.builder().create<kernel::EmbedOp>(op.getLoc(), lowering.tables().matrix(weight), out,
                                               lowering.f32Attr(op.getScale().convertToDouble()));
  });
  return success();
}

} // namespace cortiq::compiler
