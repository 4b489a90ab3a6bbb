#include "dialects/Kernel/IR/OpChecks.h"

using namespace mlir;

namespace cortiq::kernel {
namespace {

struct Buffer {
  Value value; ///< may be null
  uint64_t elements;
  StringRef what;
};

LogicalResult checkBuffers(Operation* op, ArrayRef<Buffer> buffers) {
  for (const Buffer& buffer : buffers)
    if (buffer.value && failed(checkBuffer(op, buffer.value, buffer.elements, buffer.what)))
      return failure();
  return success();
}

struct Vector {
  FlatSymbolRefAttr ref;
  uint64_t elements;
  StringRef what;
};

// The vectors of an operation, and its state.
LogicalResult checkTables(Operation* op, SymbolTableCollection& tables, ArrayRef<Vector> vectors,
                          FlatSymbolRefAttr stateRef, uint64_t elements) {
  for (const Vector& vector : vectors)
    if (failed(checkVector(op, tables, vector.ref, vector.elements, vector.what)))
      return failure();
  FailureOr<StateOp> state = lookUp<StateOp>(op, tables, stateRef, "state");
  if (failed(state))
    return failure();
  if (state->getElements() != elements)
    return op->emitOpError() << "keeps " << elements << " numbers, but its state " << stateRef << " holds "
                             << state->getElements();
  return success();
}

uint64_t elementsOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getElements();
}

} // namespace

LogicalResult CausalConvOp::verify() {
  return checkBuffers(*this, {{getInput(), elementsOf(getOut()), "the input"}});
}
LogicalResult CausalConvOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t channels = elementsOf(getOut());
  return checkTables(*this, tables, {{getWeightAttr(), channels * getTaps(), "the taps"}}, getStateAttr(),
                     channels * (getTaps() - 1));
}

LogicalResult ShortConvOp::verify() {
  return checkBuffers(*this, {{getInput(), 3 * elementsOf(getOut()), "the input"}});
}
LogicalResult ShortConvOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t channels = elementsOf(getOut());
  return checkTables(*this, tables, {{getWeightAttr(), channels * getTaps(), "the taps"}}, getStateAttr(),
                     channels * (getTaps() - 1));
}

LogicalResult GatedDeltaOp::verify() {
  const uint64_t values = getValueHeads() * getValueDim();
  if (getValueHeads() % getKeyHeads() != 0)
    return emitOpError() << "cannot share " << getKeyHeads() << " key heads between " << getValueHeads()
                         << " value heads";
  return checkBuffers(*this, {{getQkv(), 2 * getKeyHeads() * getKeyDim() + values, "qkv"},
                              {getZ(), values, "z"},
                              {getA(), getValueHeads(), "a"},
                              {getB(), getValueHeads(), "b"},
                              {getOut(), values, "the output"}});
}
LogicalResult GatedDeltaOp::verifySymbolUses(SymbolTableCollection& tables) {
  return checkTables(*this, tables,
                     {{getDecayAttr(), getValueHeads(), "the decay"},
                      {getDtBiasAttr(), getValueHeads(), "dt_bias"},
                      {getNormAttr(), getValueDim(), "the norm"}},
                     getStateAttr(), getValueHeads() * getKeyDim() * getValueDim());
}

LogicalResult KdaOp::verify() {
  const uint64_t keys = getHeads() * getKeyDim(), values = getHeads() * getValueDim();
  return checkBuffers(*this, {{getQ(), keys, "q"},
                              {getK(), keys, "k"},
                              {getV(), values, "v"},
                              {getF(), keys, "f"},
                              {getB(), getHeads(), "b"},
                              {getGate(), values, "the gate"},
                              {getOut(), values, "the output"}});
}
LogicalResult KdaOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t keys = getHeads() * getKeyDim();
  FailureOr<WeightOp> decay = lookUp<WeightOp>(*this, tables, getDecayAttr(), "weight");
  if (failed(decay))
    return failure();
  // A value a head, a channel, or each channel of each head.
  uint64_t decays = decay->getRows() * decay->getCols();
  if (decays != getHeads() && decays != getKeyDim())
    decays = keys;
  return checkTables(*this, tables,
                     {{getDecayAttr(), decays, "the decay"},
                      {getDtBiasAttr(), keys, "dt_bias"},
                      {getNormAttr(), getValueDim(), "the norm"}},
                     getStateAttr(), keys * getValueDim());
}

LogicalResult VmfPhaseOp::verify() {
  const uint64_t angles = getHeads() * getPhases(), values = getHeads() * getValueDim();
  return checkBuffers(*this, {{getThetaQ(), angles, "theta_q"},
                              {getThetaK(), angles, "theta_k"},
                              {getV(), values, "v"},
                              {getGate(), getHeads(), "the gate"},
                              {getOut(), values, "the output"}});
}
LogicalResult VmfPhaseOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t features = getHeads() * 2 * getPhases();
  return checkTables(*this, tables, {{getDecayAttr(), features, "the decay"}}, getStateAttr(),
                     features * getValueDim());
}

} // namespace cortiq::kernel
