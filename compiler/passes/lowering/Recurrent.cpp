// Operations with recurrent state: one call each, with a state of its own.

#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

FlatSymbolRefAttr stateOf(Operation* op, Lowering& lowering) {
  return lowering.tables().state(*cmf::recurrentState(op));
}

FlatSymbolRefAttr vectorOf(Value weight, Lowering& lowering) {
  return lowering.tables().vector(weightOf(weight));
}

} // namespace

LogicalResult lowerCausalConv(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::CausalConvOp>(operation);
  Value in = lowering.f32Of(op.getX()), out = lowering.newF32(op.getResult());
  FlatSymbolRefAttr taps = vectorOf(op.getTaps(), lowering), state = stateOf(op, lowering);
  lowering.stage(op, lowering.nameOf({weightOf(op.getTaps())}), [&] {
    lowering.builder().create<kernel::CausalConvOp>(op.getLoc(), in, taps, state, out,
                                                    lowering.i64Attr(op.getTaps().getType().getCols()),
                                                    lowering.unitAttr(op.getSilu()));
  });
  return success();
}

LogicalResult lowerShortConv(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::ShortConvOp>(operation);
  Value in = lowering.f32Of(op.getBcx()), out = lowering.newF32(op.getResult());
  FlatSymbolRefAttr taps = vectorOf(op.getTaps(), lowering), state = stateOf(op, lowering);
  lowering.stage(op, lowering.nameOf({weightOf(op.getTaps())}), [&] {
    lowering.builder().create<kernel::ShortConvOp>(op.getLoc(), in, taps, state, out,
                                                   lowering.i64Attr(op.getTaps().getType().getCols()));
  });
  return success();
}

LogicalResult lowerGatedDelta(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::GatedDeltaOp>(operation);
  Value qkv = lowering.f32Of(op.getQkv()), z = lowering.f32Of(op.getZ()), a = lowering.f32Of(op.getA()),
        b = lowering.f32Of(op.getB()), out = lowering.newF32(op.getResult());
  FlatSymbolRefAttr decay = vectorOf(op.getDecay(), lowering), dtBias = vectorOf(op.getDtBias(), lowering),
                    norm = vectorOf(op.getNorm(), lowering), state = stateOf(op, lowering);
  lowering.nameOf({weightOf(op.getNorm())});
  lowering.stage(op, lowering.inLayer("gated delta"), [&] {
    lowering.builder().create<kernel::GatedDeltaOp>(
        op.getLoc(), qkv, z, a, b, decay, dtBias, norm, state, out, lowering.i64Attr(op.getKeyHeads()),
        lowering.i64Attr(op.getValueHeads()), lowering.i64Attr(op.getKeyDim()), lowering.i64Attr(op.getValueDim()),
        lowering.f32Attr(op.getEps().convertToDouble()), lowering.unitAttr(op.getTiled()),
        lowering.unitAttr(op.getRates()), lowering.unitAttr(op.getSigmoidGate()));
  });
  return success();
}

LogicalResult lowerKda(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::KdaOp>(operation);
  Value q = lowering.f32Of(op.getQ()), k = lowering.f32Of(op.getK()), v = lowering.f32Of(op.getV()),
        f = lowering.f32Of(op.getF()), b = lowering.f32Of(op.getB()), gate = lowering.f32Of(op.getGate()),
        out = lowering.newF32(op.getResult());
  FlatSymbolRefAttr decay = vectorOf(op.getDecay(), lowering), dtBias = vectorOf(op.getDtBias(), lowering),
                    norm = vectorOf(op.getNorm(), lowering), state = stateOf(op, lowering);
  lowering.nameOf({weightOf(op.getNorm())});
  lowering.stage(op, lowering.inLayer("delta attention"), [&] {
    lowering.builder().create<kernel::KdaOp>(
        op.getLoc(), q, k, v, f, b, gate, decay, dtBias, norm, state, out, lowering.i64Attr(op.getHeads()),
        lowering.i64Attr(op.getKeyDim()), lowering.i64Attr(op.getValueDim()),
        lowering.f32Attr(op.getEps().convertToDouble()),
        op.getLowerBound() ? lowering.f32Attr(op.getLowerBound()->convertToDouble()) : FloatAttr());
  });
  return success();
}

LogicalResult lowerVmfPhase(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::VmfPhaseOp>(operation);
  Value q = lowering.f32Of(op.getThetaQ()), k = lowering.f32Of(op.getThetaK()), v = lowering.f32Of(op.getV()),
        gate = op.getGate() ? lowering.f32Of(op.getGate()) : Value(), out = lowering.newF32(op.getResult());
  FlatSymbolRefAttr decay = vectorOf(op.getDecay(), lowering), state = stateOf(op, lowering);
  lowering.nameOf({weightOf(op.getDecay())});
  lowering.stage(op, lowering.inLayer("phase attention"), [&] {
    lowering.builder().create<kernel::VmfPhaseOp>(op.getLoc(), q, k, v, gate, decay, state, out,
                                                  lowering.i64Attr(op.getHeads()), lowering.i64Attr(op.getPhases()),
                                                  lowering.i64Attr(op.getValueDim()), lowering.unitAttr(op.getDelta()));
  });
  return success();
}

} // namespace cortiq::compiler
