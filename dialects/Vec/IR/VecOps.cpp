// Parsers, verifiers, folders and builders of the vec ops.

#include "dialects/Vec/IR/VecDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cortiq::vec;

namespace {

int64_t lanesOf(Type type) {
  return cast<VectorType>(type).getNumElements();
}
Type laneOf(Type type) {
  return cast<VectorType>(type).getElementType();
}

VectorType withLanes(OpBuilder& builder, Type from, int64_t divisor, unsigned bits) {
  return VectorType::get({lanesOf(from) / divisor}, builder.getIntegerType(bits));
}

LogicalResult verifyPartialLanes(Operation* op, std::optional<int64_t> lanes, Type type) {
  if (lanes && (*lanes < 1 || *lanes > lanesOf(type)))
    return op->emitOpError("'lanes' is ") << *lanes << ", but has to be within 1 and the vector's " << lanesOf(type);
  return success();
}

/// `to` must have 1/divisor of the lanes of `from`.
LogicalResult verifyLaneRatio(Operation* op, Type from, Type to, int64_t divisor) {
  if (lanesOf(from) != divisor * lanesOf(to))
    return op->emitOpError("needs ") << divisor << " source lanes for each result lane, got " << lanesOf(from)
                                     << " for " << lanesOf(to);
  return success();
}

LogicalResult verifyField(Operation* op, Value ptr, int64_t offset) {
  auto argument = dyn_cast<BlockArgument>(ptr);
  if (!argument || !isa<KernelOp>(argument.getOwner()->getParentOp()))
    return op->emitOpError("reads only the kernel's argument block; take the pointer from the kernel's argument");
  if (offset < 0 || offset % 8 != 0)
    return op->emitOpError("field offset ") << offset << " is not a multiple of 8 at or above 0";
  return success();
}

} // namespace

//===----------------------------------------------------------------------===//
// kernel and loop
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder& builder, OperationState& state, StringRef name, StringRef isa) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  if (!isa.empty())
    state.addAttribute(getIsaAttrName(state.name), builder.getStringAttr(isa));
  Region* body = state.addRegion();
  body->emplaceBlock().addArgument(PtrType::get(builder.getContext()), state.location);
  ensureTerminator(*body, builder, state.location);
}

ParseResult KernelOp::parse(OpAsmParser& parser, OperationState& result) {
  StringAttr name;
  OpAsmParser::Argument args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) || parser.parseLParen() ||
      parser.parseArgument(args, /*allowType=*/true) || parser.parseRParen() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region* body = result.addRegion();
  if (parser.parseRegion(*body, args))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter& printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  printer.printRegionArgument(getBlock().getArgument(0));
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verifyRegions() {
  if (getBody().getNumArguments() != 1 || !isa<PtrType>(getBody().getArgument(0).getType()))
    return emitOpError("takes exactly one argument, the !vec.ptr to its argument block");
  return success();
}

void LoopOp::build(OpBuilder& builder, OperationState& state, Value lo, Value hi, int64_t step, ValueRange inits,
                   function_ref<SmallVector<Value>(OpBuilder&, Location, Value, ValueRange)> body) {
  state.addOperands({lo, hi});
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  state.addAttribute(getStepAttrName(state.name), builder.getI64IntegerAttr(step));
  Block& block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
  for (Value init : inits)
    block.addArgument(init.getType(), init.getLoc());
  if (!body)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  SmallVector<Value> yielded =
      body(builder, state.location, block.getArgument(0), ValueRange(block.getArguments()).drop_front());
  builder.create<YieldOp>(state.location, yielded);
}

ParseResult LoopOp::parse(OpAsmParser& parser, OperationState& result) {
  OpAsmParser::Argument counter;
  OpAsmParser::UnresolvedOperand lo, hi;
  int64_t step = 0;
  Builder& builder = parser.getBuilder();
  counter.type = builder.getIndexType();
  if (parser.parseArgument(counter) || parser.parseEqual() || parser.parseOperand(lo) || parser.parseKeyword("to") ||
      parser.parseOperand(hi) || parser.parseKeyword("step") || parser.parseInteger(step) ||
      parser.resolveOperand(lo, builder.getIndexType(), result.operands) ||
      parser.resolveOperand(hi, builder.getIndexType(), result.operands))
    return failure();
  result.addAttribute(getStepAttrName(result.name), builder.getI64IntegerAttr(step));
  SmallVector<OpAsmParser::Argument> regionArgs{counter}, carried;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  if (succeeded(parser.parseOptionalKeyword("iter_args"))) {
    if (parser.parseAssignmentList(carried, inits) || parser.parseArrowTypeList(result.types))
      return failure();
    if (inits.size() != result.types.size())
      return parser.emitError(parser.getNameLoc(), "needs one type for each carried value");
  }
  for (auto [argument, init, type] : llvm::zip(carried, inits, result.types)) {
    argument.type = type;
    regionArgs.push_back(argument);
    if (parser.resolveOperand(init, type, result.operands))
      return failure();
  }
  Region* body = result.addRegion();
  if (parser.parseRegion(*body, regionArgs))
    return failure();
  Block& block = body->front(); // parseRegion adds the block that the arguments belong to
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>()) {
    OpBuilder atEnd(parser.getContext()); // the block has no parent to ask yet
    atEnd.setInsertionPointToEnd(&block);
    atEnd.create<YieldOp>(result.location, ValueRange());
  }
  return parser.parseOptionalAttrDict(result.attributes);
}

void LoopOp::print(OpAsmPrinter& printer) {
  printer << ' ' << getInductionVar() << " = " << getLo() << " to " << getHi() << " step " << getStep();
  if (!getInitArgs().empty()) {
    printer << " iter_args(";
    llvm::interleaveComma(llvm::zip(getCarried(), getInitArgs()), printer,
                          [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") -> (" << getInitArgs().getTypes() << ')';
  }
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/!getInitArgs().empty());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStepAttrName()});
}

LogicalResult LoopOp::verify() {
  if (getStep() < 1)
    return emitOpError("step is ") << static_cast<int64_t>(getStep()) << ", but has to be at least 1";
  if (getInitArgs().getTypes() != getResultTypes())
    return emitOpError("has initial values and results of different types");
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  Block& block = getBlock();
  if (block.getNumArguments() != 1 + getInitArgs().size() || !block.getArgument(0).getType().isIndex())
    return emitOpError("body takes an index and then one argument for each carried value");
  // That carried, yielded and initial values agree in number and type is checked by LoopLikeOpInterface.
  if (!isa<YieldOp>(block.getTerminator()))
    return emitOpError("body has to end with vec.yield");
  return success();
}

SmallVector<Region*> LoopOp::getLoopRegions() {
  return {&getBody()};
}
std::optional<SmallVector<Value>> LoopOp::getLoopInductionVars() {
  return SmallVector<Value>{getInductionVar()};
}
MutableArrayRef<OpOperand> LoopOp::getInitsMutable() {
  return (*this)->getOpOperands().drop_front(2);
}
Block::BlockArgListType LoopOp::getRegionIterArgs() {
  return getCarried();
}
std::optional<MutableArrayRef<OpOperand>> LoopOp::getYieldedValuesMutable() {
  return getBlock().getTerminator()->getOpOperands();
}
std::optional<ResultRange> LoopOp::getLoopResults() {
  return getResults();
}

//===----------------------------------------------------------------------===//
// addresses and scalars
//===----------------------------------------------------------------------===//

OpFoldResult IndexOp::fold(FoldAdaptor) {
  return IntegerAttr::get(IndexType::get(getContext()), getValue());
}

LogicalResult LoadPtrOp::verify() {
  return verifyField(*this, getPtr(), getOffset());
}
LogicalResult LoadIndexOp::verify() {
  return verifyField(*this, getPtr(), getOffset());
}

ArrayRef<char> TableOp::getBytes() {
  return cast<DenseElementsAttr>(getValue()).getRawData();
}

LogicalResult TableOp::verify() {
  auto entries = dyn_cast<DenseIntElementsAttr>(getValue());
  const unsigned bits = entries ? entries.getElementType().getIntOrFloatBitWidth() : 0;
  if (!entries || entries.getType().getRank() != 1 || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
    return emitOpError("takes a dense list of i8, i16, i32 or i64 entries");
  if (entries.isSplat())
    return emitOpError("has one value only; a vec.constant serves");
  return success();
}

OpFoldResult PtrAddOp::fold(FoldAdaptor) {
  if (getOffset() == 0)
    return getPtr();
  if (auto inner = getPtr().getDefiningOp<PtrAddOp>()) {
    setOffset(getOffset() + inner.getOffset());
    getPtrMutable().assign(inner.getPtr());
    return getResult();
  }
  return {};
}

LogicalResult PtrOffsetOp::verify() {
  if (static_cast<int64_t>(getScale()) < 1)
    return emitOpError("scale is ") << static_cast<int64_t>(getScale()) << ", but has to be at least 1";
  return success();
}

OpFoldResult PtrOffsetOp::fold(FoldAdaptor adaptor) {
  auto index = dyn_cast_or_null<IntegerAttr>(adaptor.getIndex());
  return index && index.getInt() == 0 ? getPtr() : Value();
}

//===----------------------------------------------------------------------===//
// memory
//===----------------------------------------------------------------------===//

LogicalResult LoadOp::verify() {
  return verifyPartialLanes(*this, getLanes(), getType());
}
LogicalResult StoreOp::verify() {
  return verifyPartialLanes(*this, getLanes(), getValue().getType());
}

LogicalResult GatherOp::verify() {
  const int64_t scale = getScale();
  if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
    return emitOpError("scale is ") << scale << ", but has to be 1, 2, 4 or 8";
  if (lanesOf(getIndex().getType()) != lanesOf(getType()))
    return emitOpError("needs one index for each result lane");
  return success();
}

//===----------------------------------------------------------------------===//
// lanes
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder& builder, OperationState& state, Type type, double value) {
  auto vector = cast<VectorType>(type);
  if (auto lane = dyn_cast<FloatType>(vector.getElementType()))
    build(builder, state, DenseElementsAttr::get(vector, {builder.getFloatAttr(lane, value).getValue()}));
  else
    build(builder, state,
          DenseElementsAttr::get(
              vector, APInt(vector.getElementTypeBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)))));
}

void ConstantOp::build(OpBuilder& builder, OperationState& state, Type type, ArrayRef<int64_t> values) {
  auto vector = cast<VectorType>(type);
  SmallVector<APInt> lanes;
  for (int64_t value : values)
    lanes.emplace_back(vector.getElementTypeBitWidth(), static_cast<uint64_t>(value));
  build(builder, state, DenseElementsAttr::get(vector, lanes));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) {
  return getValue();
}

LogicalResult ConstantOp::verify() {
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError("takes a dense value");
  return success();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getType() == getValue().getType())
    return getValue();
  if (auto inner = getValue().getDefiningOp<BitcastOp>()) {
    if (inner.getValue().getType() == getType())
      return inner.getValue();
    getValueMutable().assign(inner.getValue());
    return getResult();
  }
  return {};
}

LogicalResult BitcastOp::verify() {
  if (getVectorBits(getValue().getType()) != getVectorBits(getType()))
    return emitOpError("keeps the number of bits, but goes from ")
           << getVectorBits(getValue().getType()) << " to " << getVectorBits(getType());
  return success();
}

static LogicalResult verifyShift(Operation* op, int64_t amount, Type type) {
  const int64_t bits = cast<VectorType>(type).getElementTypeBitWidth();
  if (amount < 0 || amount >= bits)
    return op->emitOpError("shifts lanes of ")
           << bits << " bits by " << amount << "; the amount is within 0 and " << bits - 1;
  return success();
}
LogicalResult ShlOp::verify() {
  return verifyShift(*this, getAmount(), getType());
}
LogicalResult ShrUOp::verify() {
  return verifyShift(*this, getAmount(), getType());
}
LogicalResult ShrSOp::verify() {
  return verifyShift(*this, getAmount(), getType());
}

LogicalResult Lookup16Op::verify() {
  if (getVectorBits(getType()) < 128)
    return emitOpError("needs at least 128 bits, the size of its table");
  return success();
}

void Dot2Op::build(OpBuilder& builder, OperationState& state, Value lhs, Value rhs, int64_t umax, int64_t xmax) {
  build(builder, state, withLanes(builder, lhs.getType(), 2, 16), lhs, rhs, builder.getI64IntegerAttr(umax),
        builder.getI64IntegerAttr(xmax));
}

LogicalResult Dot2Op::verify() {
  constexpr int64_t kMost = 32767;
  const int64_t umax = getUmax(), xmax = getXmax();
  if (xmax < 1 || xmax > 127)
    return emitOpError("xmax is ") << xmax << ", but a signed byte's bound is within 1 and 127";
  if (umax < 1 || umax > 255 || umax * xmax * 2 > kMost)
    return emitOpError("umax is ") << umax << ", but pair sums stay within i16 only for 1 to "
                                   << std::min<int64_t>(255, kMost / (2 * xmax));
  return verifyLaneRatio(*this, getLhs().getType(), getType(), 2);
}

void PairAddOp::build(OpBuilder& builder, OperationState& state, Value value) {
  build(builder, state, withLanes(builder, value.getType(), 2, 32), value);
}
LogicalResult PairAddOp::verify() {
  return verifyLaneRatio(*this, getValue().getType(), getType(), 2);
}

LogicalResult Dot4Op::verify() {
  const int64_t umax = getUmax();
  if (umax < 1 || umax > 255)
    return emitOpError("umax is ") << umax << ", but an unsigned byte's bound is within 1 and 255";
  return verifyLaneRatio(*this, getLhs().getType(), getType(), 4);
}

/// What ops that test bits of a word have in common.
static LogicalResult verifyBits(Operation* op, uint64_t bits, Type word, Type result) {
  if (bits == 0 || bits > UINT32_MAX)
    return op->emitOpError("tests bits ") << bits << ", but a word has 32, and one must be tested";
  if (llvm::cast<VectorType>(word).getShape() != llvm::cast<VectorType>(result).getShape())
    return op->emitOpError("has as many words as lanes");
  return success();
}

LogicalResult SelectBitsOp::verify() {
  return verifyBits(*this, getBits(), getWord().getType(), getType());
}

LogicalResult MulBitsOp::verify() {
  return verifyBits(*this, getBits(), getWord().getType(), getType());
}

void MulPairsOp::build(OpBuilder& builder, OperationState& state, Value lhs, Value rhs) {
  build(builder, state, withLanes(builder, lhs.getType(), 2, 32), lhs, rhs);
}
LogicalResult MulPairsOp::verify() {
  return verifyLaneRatio(*this, getLhs().getType(), getType(), 2);
}

LogicalResult ConvertOp::verify() {
  const Type from = laneOf(getValue().getType()), to = laneOf(getType());
  if (lanesOf(getValue().getType()) != lanesOf(getType()))
    return emitOpError("keeps the number of lanes, but goes from ")
           << lanesOf(getValue().getType()) << " to " << lanesOf(getType());
  const bool widens =
      (from.isInteger(8) && (to.isInteger(16) || to.isInteger(32))) || (from.isInteger(16) && to.isInteger(32));
  const bool other = (from.isInteger(32) && to.isF32()) || (from.isF32() && to.isInteger(32)) ||
                     ((from.isF16() || from.isBF16()) && to.isF32());
  if (!widens && !other)
    return emitOpError("knows no conversion from ") << from << " to " << to;
  if (getIsUnsigned() && !widens)
    return emitOpError("takes 'unsigned' only when it widens i8 or i16 lanes");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Vec/IR/VecOps.cpp.inc"
