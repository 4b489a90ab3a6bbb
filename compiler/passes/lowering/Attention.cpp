#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

LogicalResult lowerAttention(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::AttentionOp>(operation);
  const AttentionChains& c = lowering.chainsOf(op);
  OpBuilder& builder = lowering.builder();
  KernelTables& tables = lowering.tables();
  Value q = lowering.f32Of(c.q.root), k = lowering.f32Of(c.k.root), v = lowering.f32Of(c.v.root);
  auto norm = [&](const HeadChain& chain) {
    cmf::RmsNormOp op = chain.norm;
    return op ? tables.vector(weightOf(op.getWeight()), op.getUnitOffset() ? 1.0f : 0.0f) : FlatSymbolRefAttr();
  };
  double eps = 0.0;
  for (const HeadChain* chain : {&c.q, &c.k, &c.v})
    if (cmf::RmsNormOp op = chain->norm)
      eps = op.getEps().convertToDouble();
  FlatSymbolRefAttr cache = tables.cache(op);
  cmf::RopeOp rope = c.q.rope;
  Value still = op.getStill() ? lowering.allocF32(op.getStill()) : Value();
  lowering.stage(op, lowering.inLayer("rope and cache"), [&] {
    builder.create<kernel::AttentionPrepOp>(
        op.getLoc(), q, k, v, cache, norm(c.q), norm(c.k), rope ? tables.rope(rope.getRopeAttr()) : FlatSymbolRefAttr(),
        lowering.i64Attr(op.getHeads()), lowering.i64Attr(op.getHeadDim()), lowering.f32Attr(eps),
        lowering.unitAttr(c.q.normLast || c.k.normLast), lowering.unitAttr(c.v.norm != nullptr),
        lowering.f32Attr(op.getTemperatureLength() ? op.getTemperatureLength()->convertToDouble() : 0.0),
        lowering.f32Attr(op.getTemperatureScale() ? op.getTemperatureScale()->convertToDouble() : 0.0), still);
  });
  Buffers& b = lowering.allocForms(op.getResult());
  auto anchors = [&](Value v) { return v ? tables.vector(weightOf(v)) : FlatSymbolRefAttr(); };
  FlatSymbolRefAttr sinks = op.getSinks() ? tables.vector(weightOf(op.getSinks())) : FlatSymbolRefAttr();
  lowering.stage(op, lowering.inLayer("attention"), [&] {
    builder.create<kernel::AttentionOp>(op.getLoc(), q, cache, sinks, b.f32, b.q8a, lowering.i64Attr(op.getHeads()),
                                        lowering.i64Attr(op.getHeadDim()),
                                        lowering.f32Attr(op.getScale().convertToDouble()),
                                        lowering.f32Attr(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0),
                                        still, anchors(op.getAnchorKeys()), anchors(op.getAnchorValues()),
                                        lowering.i64Attr(op.getAnchorCount()), op.getGroupWindowsAttr());
  });
  return success();
}

LogicalResult lowerRope(Operation* op, Lowering&) {
  return op->emitOpError() << "stands outside of the queries and keys of an attention";
}

} // namespace cortiq::compiler
