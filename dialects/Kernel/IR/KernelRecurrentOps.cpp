#include "dialects/Kernel/IR/KernelDialect.h"

using namespace mlir;

namespace cortiq::kernel {
namespace {

LogicalResult checkBuffers(Operation* op, ArrayRef<std::pair<Value, uint64_t>> buffers) {
  for (auto [number, entry] : llvm::enumerate(buffers)) {
    auto [value, elements] = entry;
    if (value && cast<BufferType>(value.getType()).getElements() != static_cast<int64_t>(elements))
      return op->emitOpError() << "has " << cast<BufferType>(value.getType()).getElements() << " elements in buffer "
                               << number << ", its sizes ask for " << elements;
  }
  return success();
}

LogicalResult checkState(Operation* op, SymbolTableCollection& tables, FlatSymbolRefAttr ref, uint64_t elements) {
  auto state = tables.lookupNearestSymbolFrom<StateOp>(op->getParentOfType<ModuleOp>(), ref);
  if (!state)
    return op->emitOpError() << "names " << ref << ", which is no state of this module";
  if (state.getElements() != elements)
    return op->emitOpError() << "keeps " << elements << " numbers, but its state " << ref << " holds "
                             << state.getElements();
  return success();
}

LogicalResult checkVector(Operation* op, SymbolTableCollection& tables, FlatSymbolRefAttr ref, uint64_t elements) {
  auto weight = tables.lookupNearestSymbolFrom<WeightOp>(op->getParentOfType<ModuleOp>(), ref);
  if (!weight)
    return op->emitOpError() << "names " << ref << ", which is no weight of this module";
  if (weight.getCodec() != "f32" || weight.getLayout() != Layout::verbatim ||
      weight.getRows() * weight.getCols() != elements)
    return op->emitOpError() << "needs " << elements << " plain f32 values, but " << ref << " is " << weight.getCodec()
                             << " with " << weight.getRows() << " x " << weight.getCols();
  return success();
}

uint64_t elementsOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getElements();
}

} // namespace

LogicalResult CausalConvOp::verify() {
  return checkBuffers(*this, {{getInput(), elementsOf(getOut())}});
}
LogicalResult CausalConvOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t channels = elementsOf(getOut());
  return success(succeeded(checkVector(*this, tables, getWeightAttr(), channels * getTaps())) &&
                 succeeded(checkState(*this, tables, getStateAttr(), channels * (getTaps() - 1))));
}

LogicalResult ShortConvOp::verify() {
  return checkBuffers(*this, {{getInput(), 3 * elementsOf(getOut())}});
}
LogicalResult ShortConvOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t channels = elementsOf(getOut());
  return success(succeeded(checkVector(*this, tables, getWeightAttr(), channels * getTaps())) &&
                 succeeded(checkState(*this, tables, getStateAttr(), channels * (getTaps() - 1))));
}

LogicalResult GatedDeltaOp::verify() {
  const uint64_t values = getValueHeads() * getValueDim();
  if (getValueHeads() % getKeyHeads() != 0)
    return emitOpError() << "cannot share " << getKeyHeads() << " key heads between " << getValueHeads()
                         << " value heads";
  return checkBuffers(*this, {{getQkv(), 2 * getKeyHeads() * getKeyDim() + values},
                              {getZ(), values},
                              {getA(), getValueHeads()},
                              {getB(), getValueHeads()},
                              {getOut(), values}});
}
LogicalResult GatedDeltaOp::verifySymbolUses(SymbolTableCollection& tables) {
  return success(succeeded(checkVector(*this, tables, getDecayAttr(), getValueHeads())) &&
                 succeeded(checkVector(*this, tables, getDtBiasAttr(), getValueHeads())) &&
                 succeeded(checkVector(*this, tables, getNormAttr(), getValueDim())) &&
                 succeeded(checkState(*this, tables, getStateAttr(), getValueHeads() * getKeyDim() * getValueDim())));
}

LogicalResult KdaOp::verify() {
  const uint64_t keys = getHeads() * getKeyDim(), values = getHeads() * getValueDim();
  return checkBuffers(*this, {{getQ(), keys},
                              {getK(), keys},
                              {getV(), values},
                              {getF(), keys},
                              {getB(), getHeads()},
                              {getGate(), values},
                              {getOut(), values}});
}
LogicalResult KdaOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t keys = getHeads() * getKeyDim();
  auto decay = tables.lookupNearestSymbolFrom<WeightOp>((*this)->getParentOfType<ModuleOp>(), getDecayAttr());
  uint64_t decays = decay ? decay.getRows() * decay.getCols() : keys;
  if (decays != getHeads() && decays != getKeyDim())
    decays = keys;
  return success(succeeded(checkVector(*this, tables, getDecayAttr(), decays)) &&
                 succeeded(checkVector(*this, tables, getDtBiasAttr(), keys)) &&
                 succeeded(checkVector(*this, tables, getNormAttr(), getValueDim())) &&
                 succeeded(checkState(*this, tables, getStateAttr(), keys * getValueDim())));
}

LogicalResult VmfPhaseOp::verify() {
  const uint64_t angles = getHeads() * getPhases(), values = getHeads() * getValueDim();
  return checkBuffers(
      *this,
      {{getThetaQ(), angles}, {getThetaK(), angles}, {getV(), values}, {getGate(), getHeads()}, {getOut(), values}});
}
LogicalResult VmfPhaseOp::verifySymbolUses(SymbolTableCollection& tables) {
  const uint64_t features = getHeads() * 2 * getPhases();
  return success(succeeded(checkVector(*this, tables, getDecayAttr(), features)) &&
                 succeeded(checkState(*this, tables, getStateAttr(), features * getValueDim())));
}

} // namespace cortiq::kernel
