#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerHadamard(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::HadamardOp>(operation);
  Value x = lowering.f32Of(op.getX());
  Buffers& b = lowering.allocForms(op.getResult());
  lowering.stage(op, lowering.inLayer("hadamard"), [&] {
    lowering.builder().create<kernel::HadamardOp>(op.getLoc(), x, b.f32, b.q8a, lowering.i64Attr(op.getBlock()),
                                                  op.getNegativeAttr(), op.getInverseAttr(), op.getHalfAttr());
  });
  return success();
}

} // namespace cortiq::compiler
