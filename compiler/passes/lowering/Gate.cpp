#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerGate(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::GateOp>(operation);
  Value x = lowering.f32Of(op.getX()), g = lowering.f32Of(op.getG());
  Buffers& b = lowering.allocForms(op.getResult());
  auto function = kernel::GateFunctionAttr::get(op.getContext(), static_cast<kernel::GateFunction>(op.getFunction()));
  lowering.stage(op, lowering.inLayer("gate"),
                 [&] { lowering.builder().create<kernel::GateOp>(op.getLoc(), x, g, function, b.f32, b.q8a); });
  return success();
}

} // namespace cortiq::compiler
