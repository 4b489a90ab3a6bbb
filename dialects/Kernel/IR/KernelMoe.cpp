// What the stages of a mixture of experts have to hold together.

#include "dialects/Kernel/IR/OpChecks.h"

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::kernel {
namespace {

BufferType bufferOf(Value v) {
  return cast<BufferType>(v.getType());
}

std::optional<FlatSymbolRefAttr> present(FlatSymbolRefAttr ref) {
  return ref ? std::optional(ref) : std::nullopt;
}

/// A plan for `experts` experts and `choices` choices a token.
LogicalResult checkPlan(Operation* op, Value plan, int64_t experts, int64_t choices) {
  return checkBuffer(op, plan, 2 * experts + 2 + 2 * choices, "the plan");
}

/// Whether the buffers that are there hold equally many values a token.
LogicalResult checkSameRecords(Operation* op, ArrayRef<Value> values) {
  std::optional<int64_t> records;
  for (Value v : values) {
    if (!v)
      continue;
    if (records && *records != bufferOf(v).getRecords())
      return op->emitOpError() << "needs buffers of equally many records, found " << *records << " and "
                               << bufferOf(v).getRecords();
    records = bufferOf(v).getRecords();
  }
  return success();
}

/// One entry an expert: a weight with column scales for `cols` columns (null: any number), or unit.
LogicalResult checkColumnScales(Operation* op, SymbolTableCollection& tables, std::optional<ArrayAttr> scales,
                                size_t experts, llvm::function_ref<int64_t(size_t)> cols) {
  if (!scales)
    return success();
  if (scales->size() != experts)
    return op->emitOpError() << "lists " << scales->size() << " column scales for " << experts << " experts";
  for (auto [e, entry] : llvm::enumerate(*scales)) {
    if (isa<UnitAttr>(entry))
      continue;
    auto ref = dyn_cast<FlatSymbolRefAttr>(entry);
    if (!ref)
      return op->emitOpError() << "has a column scale " << entry << ", neither a weight nor unit";
    FailureOr<WeightOp> w = lookUp<WeightOp>(op, tables, ref, "weight");
    if (failed(w))
      return failure();
    const formats::Codec* codec = formats::find_codec({w->getCodec().data(), w->getCodec().size()});
    if (!codec || !codec->column_scales || int64_t(w->getCols()) != cols(e))
      return op->emitOpError() << "takes column scales from " << ref << ", which has none for " << cols(e)
                               << " columns";
  }
  return success();
}

} // namespace

LogicalResult MoeRouteOp::verify() {
  const int64_t experts = bufferOf(getLogits()).getElements(), choices = bufferOf(getIds()).getElements();
  if (failed(checkBuffer(*this, getWeights(), choices, "the weights")))
    return failure();
  const int64_t groups = getGroups(), used = getGroupsUsed();
  if (experts % groups != 0 || used > groups || choices > experts / groups * used)
    return emitOpError() << "chooses " << choices << " of " << experts << " experts, " << used << " of " << groups
                         << " groups";
  return success();
}
LogicalResult MoeRouteOp::verifySymbolUses(SymbolTableCollection& tables) {
  const int64_t experts = bufferOf(getLogits()).getElements();
  if (failed(checkVector(*this, tables, present(getBiasAttr()), experts, "the bias")))
    return failure();
  return checkVector(*this, tables, present(getScalesAttr()), experts, "the scales");
}

LogicalResult MoePlanOp::verify() {
  return checkPlan(*this, getPlan(), getExperts(), bufferOf(getIds()).getElements());
}
LogicalResult MoePlanOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

LogicalResult MoeGatherOp::verify() {
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})) ||
      failed(checkSameElements(*this, {getX(), getQx(), getOut(), getAct()})) ||
      failed(checkSameRecords(*this, {getOut(), getAct()})))
    return failure();
  const bool scaled = bool(getColumnScalesAttr());
  if ((scaled || getOut()) && !getX())
    return emitOpError() << "needs floats to read";
  if (!scaled && getAct() && !getQx())
    return emitOpError() << "needs quantized activations to copy";
  return checkPlan(*this, getPlan(), getExperts(), bufferOf(getOut() ? getOut() : getAct()).getRecords());
}
LogicalResult MoeGatherOp::verifySymbolUses(SymbolTableCollection& tables) {
  const int64_t cols = bufferOf(getOut() ? getOut() : getAct()).getElements();
  return checkColumnScales(*this, tables, getColumnScales(), getExperts(), [&](size_t) { return cols; });
}

LogicalResult MoeMatmulOp::verify() {
  Block& body = getBody().front();
  if (body.empty())
    return emitOpError() << "has no experts";
  int64_t experts = 0;
  for (Operation& op : body) {
    if (!isa<ExpertOp>(op))
      return op.emitOpError() << "is no expert of a kernel.moe_matmul";
    ++experts;
  }
  return checkPlan(*this, getPlan(), experts, bufferOf(cast<ExpertOp>(body.front()).getOut()).getRecords());
}
LogicalResult MoeMatmulOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

LogicalResult ExpertOp::verify() {
  SpecAttr spec = getSpec();
  if (spec.hasTile())
    return emitOpError() << "describes a whole matrix: its spec has no tile";
  if (spec.getResidual() != bool(getSum()) || spec.getBias() != bool(getBiasAttr()))
    return emitOpError() << "must name a bias exactly when its spec says 'bias', and a sum when it says 'residual'";
  const BufferType input = bufferOf(getInput());
  if (!input.readsAs(spec.getAct()) || (getToken() && !bufferOf(getToken()).readsAs(spec.getAct())))
    return emitOpError() << "reads activations of another form than the " << stringifyForm(spec.getAct())
                         << " that its spec says";
  if (input.getElements() < spec.getK())
    return emitOpError() << "reads " << spec.getK() << " of " << input.getElements() << " elements";
  if (getToken() && failed(checkBuffer(*this, getToken(), spec.getK(), "the token's input")))
    return failure();
  if (getKernelsAttr().operator bool() != getTailsAttr().operator bool())
    return emitOpError() << "must list kernels and tails together";
  if (failed(checkSameElements(*this, {getSum(), getOut()})))
    return failure();
  return checkSameRecords(*this, {getInput(), getSum(), getOut()});
}

LogicalResult ExpertOp::verifySymbolUses(SymbolTableCollection& tables) {
  FailureOr<WeightOp> w = lookUp<WeightOp>(*this, tables, getWeightAttr(), "weight");
  if (failed(w))
    return failure();
  const int64_t rows = w->getRows();
  if (failed(checkSpecFits(*this, *w, getSpec())))
    return failure();
  if (bufferOf(getOut()).getElements() < rows)
    return emitOpError() << "writes " << rows << " rows into " << bufferOf(getOut()).getElements() << " elements";
  if (failed(checkVector(*this, tables, present(getBiasAttr()), rows, "the bias")))
    return failure();
  return checkKernels(*this, tables, getSpec(), rows, getKernelsAttr(), getTailsAttr());
}

LogicalResult MoeGluOp::verify() {
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})) ||
      failed(checkSameElements(*this, {getGate(), getUp(), getOut(), getAct()})) ||
      failed(checkSameRecords(*this, {getGate(), getUp(), getOut(), getAct()})))
    return failure();
  for (int64_t width : getWidths())
    if (width < 1 || width > bufferOf(getGate()).getElements())
      return emitOpError() << "has an expert of width " << width << " in buffers of "
                           << bufferOf(getGate()).getElements() << " elements";
  return checkPlan(*this, getPlan(), getWidths().size(), bufferOf(getGate()).getRecords());
}
LogicalResult MoeGluOp::verifySymbolUses(SymbolTableCollection& tables) {
  return checkColumnScales(*this, tables, getColumnScales(), getWidths().size(),
                           [&](size_t e) { return getWidths()[e]; });
}

LogicalResult MoeCombineOp::verify() {
  if (failed(checkSameElements(*this, {getPairs(), getShared(), getResidual(), getOut()})))
    return failure();
  const int64_t choices = bufferOf(getPairs()).getRecords();
  if (failed(checkBuffer(*this, getWeights(), choices, "the weights")))
    return failure();
  if (getSharedGate() && (!getShared() || failed(checkBuffer(*this, getSharedGate(), 1, "the shared gate"))))
    return emitOpError() << "has a gate of a shared expert that it cannot use";
  return checkPlan(*this, getPlan(), getExperts(), choices);
}
LogicalResult MoeCombineOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

} // namespace cortiq::kernel
