#include "dialects/Kernel/IR/KernelDialect.h"
#include "dialects/Kernel/IR/OpChecks.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::kernel {
namespace {

// Bare words and "R x C" extents of the textual form.
ParseResult parseWord(OpAsmParser& p, StringAttr& word) {
  StringRef text;
  if (p.parseKeyword(&text))
    return failure();
  word = p.getBuilder().getStringAttr(text);
  return success();
}
void printWord(OpAsmPrinter& p, Operation*, StringAttr word) {
  p << word.getValue();
}

ParseResult parseLayoutWord(OpAsmParser& p, LayoutAttr& layout) {
  FailureOr<Layout> value = FieldParser<Layout>::parse(p);
  if (failed(value))
    return failure();
  layout = LayoutAttr::get(p.getContext(), *value);
  return success();
}
void printLayoutWord(OpAsmPrinter& p, Operation*, LayoutAttr layout) {
  p << stringifyLayout(layout.getValue());
}

ParseResult parseActivationWord(OpAsmParser& p, ActivationAttr& activation) {
  FailureOr<Activation> value = FieldParser<Activation>::parse(p);
  if (failed(value))
    return failure();
  activation = ActivationAttr::get(p.getContext(), *value);
  return success();
}
void printActivationWord(OpAsmPrinter& p, Operation*, ActivationAttr activation) {
  p << stringifyActivation(activation.getValue());
}

ParseResult parseExtent(OpAsmParser& p, IntegerAttr& rows, IntegerAttr& cols) {
  int64_t r = 0, c = 0;
  if (p.parseInteger(r) || p.parseKeyword("x") || p.parseInteger(c))
    return failure();
  rows = p.getBuilder().getI64IntegerAttr(r);
  cols = p.getBuilder().getI64IntegerAttr(c);
  return success();
}
void printExtent(OpAsmPrinter& p, Operation*, IntegerAttr rows, IntegerAttr cols) {
  p << rows.getInt() << " x " << cols.getInt();
}

} // namespace

//===-- Tables ---------------------------------------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  const formats::Codec* codec = formats::find_codec({getCodec().data(), getCodec().size()});
  if (!codec || codec->form == formats::DotForm::kNone)
    return emitOpError() << "has codec '" << getCodec() << "', which is no weight codec";
  auto bytes = formats::packed_bytes(*codec, static_cast<formats::LayoutId>(getLayout()), getRows(), getCols());
  if (!bytes.ok())
    return emitOpError() << bytes.status().message();
  if (getAdd().convertToFloat() != 0.0f && (getCodec() != "f32" || getLayout() != Layout::verbatim))
    return emitOpError() << "adds a value to its weights, which only f32 vectors can do";
  return success();
}

LogicalResult DefineOp::verify() {
  if (!getSpec().hasTile())
    return emitOpError() << "needs a spec with a tile: one kernel serves one number of tokens and rows";
  return success();
}

LogicalResult RopeTableOp::verify() {
  if (getInverseFrequencies().empty())
    return emitOpError() << "has no frequencies";
  return success();
}

//===-- Program --------------------------------------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  Block& body = getBody().front();
  if (body.empty() || !isa<ReturnOp>(body.back()))
    return emitOpError() << "must end in kernel.return";
  for (Operation& op : body.without_terminator())
    if (!isa<AllocOp, StageOp>(op))
      return op.emitOpError() << "stands outside of a kernel.stage";
  return success();
}

LogicalResult AllocOp::verify() {
  if (getOffset() && *getOffset() % 64 != 0)
    return emitOpError() << "has offset " << *getOffset() << ", which is no multiple of 64";
  return success();
}

LogicalResult StageOp::verify() {
  if (getBody().front().empty())
    return emitOpError() << "is empty";
  return success();
}

//===-- Calls ----------------------------------------------------------------------------------------------------===//

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection& tables) {
  FailureOr<WeightOp> w = lookUp<WeightOp>(*this, tables, getWeightAttr(), "weight");
  if (failed(w))
    return failure();
  return checkBuffer(*this, getOut(), w->getCols(), "the output");
}

LogicalResult NormOp::verify() {
  if (failed(checkSomeOutput(*this, {getSum(), getOut(), getAct()})))
    return failure();
  if (getBias() && !getCentered())
    return emitOpError() << "adds a bias, which only a centered norm has";
  return checkSameElements(*this, {getInput(), getAdd(), getSum(), getOut(), getAct()});
}
LogicalResult NormOp::verifySymbolUses(SymbolTableCollection& tables) {
  if (failed(checkVector(*this, tables, getBiasAttr() ? std::optional(getBiasAttr()) : std::nullopt,
                         getInput().getType().getElements(), "the bias")))
    return failure();
  return checkVector(*this, tables, getWeightAttr() ? std::optional(getWeightAttr()) : std::nullopt,
                     getInput().getType().getElements(), "the weight");
}

LogicalResult QuantizeOp::verify() {
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})))
    return failure();
  if (getOut() && !getColumnScaleAttr())
    return emitOpError() << "only copies: floats need no quantize without column scales";
  return checkSameElements(*this, {getInput(), getOut(), getAct()});
}
LogicalResult QuantizeOp::verifySymbolUses(SymbolTableCollection& tables) {
  if (!getColumnScaleAttr())
    return success();
  FailureOr<WeightOp> w = lookUp<WeightOp>(*this, tables, getColumnScaleAttr(), "weight");
  if (failed(w))
    return failure();
  const formats::Codec* codec = formats::find_codec({w->getCodec().data(), w->getCodec().size()});
  if (!codec || !codec->column_scales)
    return emitOpError() << "takes column scales from " << getColumnScaleAttr() << ", which is " << w->getCodec()
                         << " and has none";
  return checkBuffer(*this, getInput(), w->getCols(), "the input");
}

LogicalResult GluOp::verify() {
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})))
    return failure();
  return checkSameElements(*this, {getGate(), getUp(), getOut(), getAct()});
}
LogicalResult GluOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

LogicalResult MatmulOp::verify() {
  Block& body = getBody().front();
  if (body.empty())
    return emitOpError() << "has no parts";
  for (Operation& op : body)
    if (!isa<CallOp>(op))
      return op.emitOpError() << "is no part of a kernel.matmul";
  return success();
}
LogicalResult MatmulOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

LogicalResult CallOp::verify() {
  SpecAttr spec = getSpec();
  if (spec.hasTile())
    return emitOpError() << "describes a whole matrix: its spec has no tile";
  if (spec.getBias() != bool(getBiasAttr()))
    return emitOpError() << "must name a bias exactly when its spec says 'bias'";
  if (spec.getResidual() != bool(getResidual()))
    return emitOpError() << "must name a residual exactly when its spec says 'res'";
  auto input = cast<BufferType>(getInput().getType());
  if (!input.readsAs(spec.getAct()))
    return emitOpError() << "reads " << stringifyForm(input.getForm()) << " activations, its spec says "
                         << stringifyForm(spec.getAct());
  const int64_t inputColumn = getInputColumn();
  if (inputColumn != 0 && spec.getAct() != Form::f32)
    return emitOpError() << "has an input column, which quantized activations cannot have";
  if (spec.getAct() != Form::f32 && failed(checkBuffer(*this, getInput(), spec.getK(), "the input")))
    return failure();
  if ((inputColumn != 0 || getOutColumn() != 0) && getResidual())
    return emitOpError() << "has columns and a residual";
  if (input.getElements() != spec.getK() && inputColumn + spec.getK() > static_cast<int64_t>(input.getElements()))
    return emitOpError() << "the input must hold " << inputColumn + spec.getK() << " elements, not "
                         << input.getElements();
  if (getKernelsAttr().operator bool() != getTailsAttr().operator bool())
    return emitOpError() << "must list kernels and tails together";
  return checkSameElements(*this, {getOut(), getResidual()});
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection& tables) {
  FailureOr<WeightOp> w = lookUp<WeightOp>(*this, tables, getWeightAttr(), "weight");
  if (failed(w))
    return failure();
  if (failed(checkSpecFits(*this, *w, getSpec())))
    return failure();
  int64_t rows = w->getRows();
  const int64_t width = getOut().getType().getElements();
  // Only a part of a wider row has a column.
  if (getInputColumn() == 0 && getOutColumn() == 0 &&
      cast<BufferType>(getInput().getType()).getElements() == getSpec().getK() && width != rows)
    return emitOpError() << "the output must hold " << rows << " elements, not " << width;
  if (static_cast<int64_t>(getOutColumn()) + rows > width)
    return emitOpError() << "ends at column " << getOutColumn() + rows << " of an output of " << width << " elements";
  if (failed(checkVector(*this, tables, getBiasAttr() ? std::optional(getBiasAttr()) : std::nullopt, rows, "the bias")))
    return failure();
  return checkKernels(*this, tables, getSpec(), rows, getKernelsAttr(), getTailsAttr());
}

LogicalResult KvLayerOp::verify() {
  if (getRing() && getWindow() == 0)
    return emitOpError("has a 'ring' without a 'window'");
  return success();
}

LogicalResult AttentionPrepOp::verify() {
  return checkBuffer(*this, getQ(), getHeads() * getHeadDim(), "q");
}
LogicalResult AttentionPrepOp::verifySymbolUses(SymbolTableCollection& tables) {
  FailureOr<KvLayerOp> kv = lookUp<KvLayerOp>(*this, tables, getCacheAttr(), "cache");
  if (failed(kv))
    return failure();
  if (kv->getKDim() != getHeadDim())
    return emitOpError() << "has heads of " << getHeadDim() << ", its cache holds keys of " << kv->getKDim();
  if (getHeads() % kv->getKvHeads() != 0)
    return emitOpError() << "cannot share " << kv->getKvHeads() << " key heads between " << getHeads()
                         << " query heads";
  if (failed(checkBuffer(*this, getK(), kv->getKvHeads() * kv->getKDim(), "k")) ||
      failed(checkBuffer(*this, getV(), kv->getKvHeads() * kv->getVDim(), "v")))
    return failure();
  auto vector = [&](FlatSymbolRefAttr ref, StringRef what) {
    return checkVector(*this, tables, ref ? std::optional(ref) : std::nullopt, getHeadDim(), what);
  };
  if (failed(vector(getQNormAttr(), "q_norm")) || failed(vector(getKNormAttr(), "k_norm")))
    return failure();
  if (!getRopeAttr())
    return success();
  FailureOr<RopeTableOp> rope = lookUp<RopeTableOp>(*this, tables, getRopeAttr(), "rope table");
  if (failed(rope))
    return failure();
  if (int64_t(rope->getInverseFrequencies().size()) * 2 > int64_t(getHeadDim()))
    return emitOpError() << "rotates " << rope->getInverseFrequencies().size() << " pairs of heads of " << getHeadDim();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(checkSomeOutput(*this, {getOut(), getAct()})) || failed(checkSameElements(*this, {getOut(), getAct()})))
    return failure();
  return checkBuffer(*this, getQ(), getHeads() * getHeadDim(), "q");
}
LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection& tables) {
  FailureOr<KvLayerOp> kv = lookUp<KvLayerOp>(*this, tables, getCacheAttr(), "cache");
  if (failed(kv))
    return failure();
  int64_t width = getHeads() * kv->getVDim();
  for (Value v : {Value(getOut()), Value(getAct())})
    if (v && failed(checkBuffer(*this, v, width, "the output")))
      return failure();
  return checkVector(*this, tables, getSinksAttr() ? std::optional(getSinksAttr()) : std::nullopt, getHeads(),
                     "the sinks");
}

LogicalResult LogitsOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}
LogicalResult AddOp::verifySymbolUses(SymbolTableCollection&) {
  return success();
}

} // namespace cortiq::kernel

#define GET_OP_CLASSES
#include "dialects/Kernel/IR/KernelOps.cpp.inc"
