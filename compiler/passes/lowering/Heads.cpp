#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerConcatHeads(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ConcatHeadsOp>(operation);
  Value a = lowering.f32Of(op.getA()), b = lowering.f32Of(op.getB());
  Value out = lowering.newF32(op.getResult());
  lowering.stage(op, lowering.inLayer("heads"), [&] {
    lowering.builder().create<kernel::ConcatHeadsOp>(op.getLoc(), a, b, out, lowering.i64Attr(op.getHeads()));
  });
  return success();
}

// One part a head, each on its own columns. Kernels read whole vectors, so a head's features must fill them.
LogicalResult lowerHeadMatmul(Operation* operation, Lowering& lowering) {
  constexpr int64_t kVector = 16;
  auto op = cast<cmf::HeadMatmulOp>(operation);
  OpBuilder& builder = lowering.builder();
  const cmf::WeightType type = op.getWeightType(0);
  if (type.getCols() % kVector != 0)
    return op.emitOpError() << "has heads of " << type.getCols() << " features, which must be a multiple of "
                            << kVector;
  Value x = lowering.f32Of(op.getX()), out = lowering.newF32(op.getResult());
  SmallVector<FlatSymbolRefAttr> symbols;
  for (Value w : op.getWeights()) {
    if (hasColumnScales(weightOf(w)))
      return op.emitOpError() << "takes no weight with column scales";
    symbols.push_back(lowering.tables().matrix(weightOf(w)));
  }
  lowering.stage(op, lowering.nameOf({weightOf(op.getWeights()[0])}), [&] {
    auto matmul = builder.create<kernel::MatmulOp>(op.getLoc());
    builder.createBlock(&matmul.getBody());
    for (auto [h, w] : llvm::enumerate(op.getWeights())) {
      cmf::WeightOp weight = weightOf(w);
      std::string_view codec = weight.getType().getCodec().name;
      auto spec = kernel::SpecAttr::get(builder.getContext(), {codec.data(), codec.size()},
                                        static_cast<kernel::Layout>(*weight.getLayout()), type.getCols(), 0, 0,
                                        kernel::Form::f32, lowering.isa(), false, false);
      builder.create<kernel::CallOp>(op.getLoc(), symbols[h], x, FlatSymbolRefAttr(), Value(), out, spec, ArrayAttr(),
                                     ArrayAttr(), lowering.i64Attr(h * type.getCols()),
                                     lowering.i64Attr(h * type.getRows()));
    }
  });
  return success();
}

LogicalResult lowerClusterLogits(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ClusterLogitsOp>(operation);
  if (!op.getLogits().hasOneUse())
    return op.emitOpError() << "works in place, but its input has other users";
  Value logits = lowering.f32Of(op.getLogits()), clusters = lowering.f32Of(op.getClusters());
  lowering.buffersOf(op.getResult()).f32 = logits;
  lowering.stage(op, "clusters",
                 [&] { lowering.builder().create<kernel::ClusterLogitsOp>(op.getLoc(), logits, clusters); });
  return success();
}

} // namespace cortiq::compiler
