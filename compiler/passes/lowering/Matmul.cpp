#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

void fusedMatmulForms(OpOperand& use, Forms& forms) {
  auto matmul = cast<cmf::FusedMatmulOp>(use.getOwner());
  if (use.getOperandNumber() != 0) {
    forms.f32 = true;
    return;
  }
  for (Value w : matmul.getWeights()) {
    bool q8a = formFor(weightOf(w), *matmul.getArm()) == kernel::Form::q8a && !hasColumnScales(weightOf(w));
    (q8a ? forms.q8a : forms.f32) = true;
  }
}

LogicalResult lowerFusedMatmul(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::FusedMatmulOp>(operation);
  if (!op.getArm())
    return op.emitOpError() << "has no arm: run cmf-specialise first";
  struct Part {
    cmf::WeightOp weight;
    kernel::SpecAttr spec;
    Value input, out;
  };
  SmallVector<Part> parts;
  SmallVector<cmf::WeightOp> weights;
  OpBuilder& builder = lowering.builder();
  for (auto [i, w] : llvm::enumerate(op.getWeights())) {
    cmf::WeightOp weight = weightOf(w);
    kernel::Form form = formFor(weight, *op.getArm());
    kernel::SpecAttr spec = lowering.specOf(weight, form, bool(op.getBiasOf(i)), bool(op.getResidual()));
    Value input = lowering.inputFor(op, op.getX(), weight, form);
    parts.push_back({weight, spec, input, lowering.newF32(op.getResult(i))});
    weights.push_back(weight);
  }
  Value residual = op.getResidual() ? lowering.f32Of(op.getResidual()) : Value();
  lowering.stage(op, lowering.nameOf(weights), [&] {
    auto matmul = builder.create<kernel::MatmulOp>(op.getLoc());
    builder.createBlock(&matmul.getBody());
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value bias = op.getBiasOf(i);
      builder.create<kernel::CallOp>(op.getLoc(), lowering.tables().matrix(part.weight), part.input,
                                     bias ? lowering.tables().vector(weightOf(bias)) : FlatSymbolRefAttr(), residual,
                                     part.out, part.spec, ArrayAttr(), ArrayAttr(), lowering.i64Attr(0),
                                     lowering.i64Attr(0));
    }
  });
  return success();
}

LogicalResult lowerUnfused(Operation* op, Lowering&) {
  return op->emitOpError() << "must become a cmf.fused_matmul first: run cmf-fuse-dequant-matmul";
}

LogicalResult lowerWeight(Operation*, Lowering&) {
  return success(); // an entry of the weight table, made where it is used
}

} // namespace cortiq::compiler
