#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerRmsNorm(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::RmsNormOp>(operation);
  if (op.getGroup() && int64_t(*op.getGroup()) != Lowering::width(op.getX()))
    return op.emitOpError() << "over groups stands outside of the heads of an attention";
  Value in = lowering.f32Of(op.getX());
  Buffers& b = lowering.allocForms(op.getResult());
  FlatSymbolRefAttr weight;
  std::string name = lowering.inLayer("norm");
  if (op.getWeight()) {
    weight = lowering.tables().vector(weightOf(op.getWeight()), op.getUnitOffset() ? 1.0f : 0.0f);
    name = lowering.nameOf({weightOf(op.getWeight())});
  }
  lowering.stage(op, name, [&] {
    lowering.builder().create<kernel::NormOp>(op.getLoc(), in, Value(), weight, Value(), b.f32, b.q8a,
                                              lowering.f32Attr(op.getEps().convertToDouble()), lowering.f32Attr(1.0),
                                              FlatSymbolRefAttr(), UnitAttr());
  });
  return success();
}

LogicalResult lowerLayerNorm(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::LayerNormOp>(operation);
  Value in = lowering.f32Of(op.getX());
  Buffers& b = lowering.allocForms(op.getResult());
  auto vector = [&](Value v) { return v ? lowering.tables().vector(weightOf(v)) : FlatSymbolRefAttr(); };
  FlatSymbolRefAttr weight = vector(op.getWeight()), bias = vector(op.getBias());
  std::string name = weight ? lowering.nameOf({weightOf(op.getWeight())}) : lowering.inLayer("norm");
  lowering.stage(op, name, [&] {
    lowering.builder().create<kernel::NormOp>(op.getLoc(), in, Value(), weight, Value(), b.f32, b.q8a,
                                              lowering.f32Attr(op.getEps().convertToDouble()), lowering.f32Attr(1.0),
                                              bias, UnitAttr::get(op.getContext()));
  });
  return success();
}

LogicalResult lowerAddRmsNorm(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::AddRmsNormOp>(operation);
  Value a = lowering.f32Of(op.getA()), add = lowering.f32Of(op.getB());
  Value sum = op.getSum().use_empty() ? Value() : lowering.newF32(op.getSum());
  Buffers& b = lowering.allocForms(op.getNormed());
  cmf::WeightOp weight = weightOf(op.getWeight());
  lowering.stage(op, lowering.nameOf({weight}), [&] {
    lowering.builder().create<kernel::NormOp>(
        op.getLoc(), a, add, lowering.tables().vector(weight, op.getUnitOffset() ? 1.0f : 0.0f), sum, b.f32, b.q8a,
        lowering.f32Attr(op.getEps().convertToDouble()), lowering.f32Attr(1.0), FlatSymbolRefAttr(), UnitAttr());
  });
  return success();
}

} // namespace cortiq::compiler
