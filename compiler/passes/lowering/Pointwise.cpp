#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

// kernel.logits works in place, so it takes over the buffer of an input that nobody else reads.
LogicalResult inPlace(Operation* op, Lowering& lowering, double multiplier, double cap) {
  Value x = op->getOperand(0);
  if (!x.hasOneUse())
    return op->emitOpError() << "works in place, but its input has other users";
  Value buffer = lowering.f32Of(x);
  lowering.buffersOf(op->getResult(0)).f32 = buffer;
  lowering.stage(op, lowering.inLayer("scale"), [&] {
    lowering.builder().create<kernel::LogitsOp>(op->getLoc(), buffer, lowering.f32Attr(multiplier),
                                                lowering.f32Attr(cap));
  });
  return success();
}

} // namespace

LogicalResult lowerGlu(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::GluOp>(operation);
  Value gate = lowering.f32Of(op.getGate()), up = lowering.f32Of(op.getUp());
  Buffers& b = lowering.allocForms(op.getResult());
  auto activation = kernel::ActivationAttr::get(op.getContext(), static_cast<kernel::Activation>(op.getActivation()));
  lowering.stage(op, lowering.inLayer("gate"), [&] {
    lowering.builder().create<kernel::GluOp>(op.getLoc(), activation, gate, up, b.f32, b.q8a,
                                             lowering.f32Attr(op.getAlpha() ? op.getAlpha()->convertToDouble() : 0.0),
                                             lowering.f32Attr(op.getLimit() ? op.getLimit()->convertToDouble() : 0.0));
  });
  return success();
}

LogicalResult lowerActivate(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ActivateOp>(operation);
  Value x = lowering.f32Of(op.getX());
  Buffers& b = lowering.allocForms(op.getResult());
  auto activation = kernel::ActivationAttr::get(op.getContext(), static_cast<kernel::Activation>(op.getActivation()));
  lowering.stage(op, lowering.inLayer("activation"), [&] {
    lowering.builder().create<kernel::GluOp>(op.getLoc(), activation, x, Value(), b.f32, b.q8a, lowering.f32Attr(0.0),
                                             lowering.f32Attr(0.0));
  });
  return success();
}

LogicalResult lowerAdd(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::AddOp>(operation);
  Value a = lowering.f32Of(op.getA()), b = lowering.f32Of(op.getB());
  Value out = lowering.newF32(op.getResult());
  lowering.stage(op, lowering.inLayer("add"),
                 [&] { lowering.builder().create<kernel::AddOp>(op.getLoc(), a, b, out, lowering.f32Attr(1.0)); });
  return success();
}

LogicalResult lowerScale(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ScaleOp>(operation);
  const double factor = op.getFactor().convertToDouble();
  // cap * tanh(factor * x / cap) is one operation.
  if (op->hasOneUse() && isa<cmf::SoftcapOp>(*op->user_begin()) && op.getX().hasOneUse()) {
    lowering.buffersOf(op.getResult()).f32 = lowering.f32Of(op.getX());
    lowering.setPendingFactor(op.getResult(), factor);
    return success();
  }
  return inPlace(op, lowering, factor, 0.0);
}

LogicalResult lowerSoftcap(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::SoftcapOp>(operation);
  return inPlace(op, lowering, lowering.pendingFactor(op.getX()), op.getCap().convertToDouble());
}

LogicalResult lowerReturn(Operation* op, Lowering& lowering) {
  for (Value result : op->getOperands())
    if (!lowering.f32Of(result))
      return op->emitOpError() << "must return logits that the function computes";
  lowering.builder().create<kernel::ReturnOp>(op->getLoc(), lowering.f32Of(op->getOperand(0)),
                                              op->getNumOperands() == 2 ? lowering.f32Of(op->getOperand(1)) : Value());
  return success();
}

} // namespace cortiq::compiler
