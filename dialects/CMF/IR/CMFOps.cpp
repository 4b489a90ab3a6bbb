#include "dialects/CMF/IR/CMF.h"

#include <cmath>

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

// Far beyond every model; keeps products of two such numbers in 64 bits.
constexpr uint64_t kMaxCount = uint64_t{1} << 24;

int64_t features(Value activations) {
  return cast<RankedTensorType>(activations.getType()).getDimSize(1);
}

// Appends tokens of `like` x `features`. Result types are inferred before operands are checked, so `like` may be of any
// type; then nothing is inferred.
LogicalResult appendActivations(Value like, int64_t features, SmallVectorImpl<Type>& types) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type || type.getRank() == 0)
    return failure();
  types.push_back(RankedTensorType::get({type.getDimSize(0), features}, Float32Type::get(type.getContext())));
  return success();
}

LogicalResult verifyCount(Operation* op, StringRef name, int64_t value) {
  if (value > 0 && static_cast<uint64_t>(value) <= kMaxCount)
    return success();
  return op->emitOpError() << "'" << name << "' must be within 1 and " << kMaxCount << ", but is " << value;
}

LogicalResult verifyPositive(Operation* op, StringRef name, const APFloat& value) {
  if (value.isFinite() && !value.isNegative() && !value.isZero())
    return success();
  return op->emitOpError() << "'" << name << "' must be a positive number";
}

// A norm's weight against the features that it covers, with both sizes in the message.
LogicalResult verifyNormWeight(Operation* op, WeightType weight, int64_t covered) {
  if (weight.getCols() == covered)
    return success();
  return op->emitOpError() << "normalizes " << covered << " features, but its weight " << weight << " has "
                           << weight.getCols();
}

LogicalResult verifyEps(Operation* op, const APFloat& eps) {
  if (eps.isFinite() && !eps.isNegative())
    return success();
  return op->emitOpError("'eps' must be a number of at least 0");
}

ParseResult parseActivation(OpAsmParser& parser, ActivationAttr& attr) {
  StringRef word;
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Activation> activation = symbolizeActivation(word);
  if (!activation)
    return parser.emitError(loc) << "unknown activation '" << word
                                 << "'; known are silu, gelu_tanh, gelu, relu, situ, swigluoai";
  attr = ActivationAttr::get(parser.getContext(), *activation);
  return success();
}

void printActivation(OpAsmPrinter& printer, Operation*, ActivationAttr attr) {
  printer << stringifyActivation(attr.getValue());
}

} // namespace

namespace {

// A weight whose payload is low-rank: the whole of it, or one factor.
LogicalResult verifyLowRank(WeightOp op, LowRankAttr lowRank) {
  const WeightType type = op.getType();
  const formats::CodecId codec = type.getCodec().id;
  if (lowRank.getPath() == 0)
    return codec == formats::CodecId::kBLR
               ? success()
               : op.emitOpError() << "has a low-rank payload without 'path': its codec must be blr, not " << type;
  const bool isU = codec == formats::CodecId::kBLRU, isV = codec == formats::CodecId::kBLRV;
  if (!isU && !isV)
    return op.emitOpError() << "is a factor of a low-rank payload: its codec must be blr_u or blr_v, not " << type;
  if ((isU ? type.getCols() : type.getRows()) != lowRank.getRank())
    return op.emitOpError() << "is a factor of rank " << lowRank.getRank() << ", which " << type << " does not have";
  if (isV && op.getRowsAttr())
    return op.emitOpError() << "takes rows of blr_v, which all rows of the matrix share";
  return success();
}

} // namespace

//===--- Weights
//----------------------------------------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  const WeightType type = getType();
  if (getName().empty())
    return emitOpError("needs a name");
  // A vector's rows are its values: a fused bias is cut by them.
  const int64_t rows = type.isMatrix() ? type.getRows() : type.getCols();
  int64_t fileRows = rows;
  if (RowsAttr map = getRowsAttr()) {
    fileRows = map.getOf();
    if (DenseI64ArrayAttr picks = map.getPicks()) {
      if (picks.size() != rows)
        return emitOpError() << "has " << rows << " rows, but picks " << picks.size();
      for (int64_t row = 0; row < rows; ++row)
        if (map.sourceRow(row) >= fileRows)
          return emitOpError() << "picks row " << map.sourceRow(row) << " of a tensor that has " << fileRows;
    }
    // How many rows of the tensor the weight's rows span.
    const int64_t take = map.getTake();
    const int64_t span = take == 0 ? rows : (rows - 1) / take * map.getPeriod() + (rows >= take ? take : rows);
    if (!map.getPicks() && span > fileRows - map.getFirst())
      return emitOpError() << "takes " << rows << " rows from row " << map.getFirst() << " of a tensor that has "
                           << fileRows;
    if (!map.getPicks() && map.getDeinterleave() != 0 && rows % map.getDeinterleave() != 0)
      return emitOpError() << "has " << rows << " rows, not a multiple of the " << map.getDeinterleave()
                           << " rows that 'deinterleave' reorders";
  }
  SourceAttr source = getSourceAttr();
  if (source && source.getLowRank() && failed(verifyLowRank(*this, source.getLowRank())))
    return failure();
  // A factor is part of its payload; that is held against its own header when it is read.
  if (source && !(source.getLowRank() && source.getLowRank().getPath() != 0)) {
    const formats::Codec& codec = type.getCodec();
    StatusOr<uint64_t> bytes = type.isMatrix() ? codec.payload_bytes(codec, fileRows, type.getCols())
                                               : codec.payload_bytes(codec, 1, fileRows);
    if (!bytes.ok())
      return emitOpError() << bytes.status().message();
    const bool fits = codec.variable_size ? source.getBytes() >= *bytes : source.getBytes() == *bytes;
    if (!fits)
      return emitOpError() << "has " << source.getBytes() << " bytes in its file, but " << type << " with " << fileRows
                           << " rows there takes " << (codec.variable_size ? "at least " : "") << *bytes;
  }
  return success();
}

LogicalResult DequantOp::inferReturnTypes(MLIRContext* context, std::optional<Location>, Adaptor adaptor,
                                          SmallVectorImpl<Type>& types) {
  auto weight = dyn_cast<WeightType>(adaptor.getWeight().getType());
  if (!weight)
    return failure();
  types.push_back(RankedTensorType::get(weight.getShape(), Float32Type::get(context)));
  return success();
}

//===--- Linear algebra
//---------------------------------------------------------------------------------------------===//

LogicalResult EmbedOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type>& types) {
  auto weight = dyn_cast<WeightType>(adaptor.getWeight().getType());
  return weight ? appendActivations(adaptor.getIds(), weight.getCols(), types) : failure();
}

LogicalResult EmbedOp::verify() {
  if (!getScale().isFinite())
    return emitOpError("'scale' is not finite");
  return success();
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor adaptor,
                                         SmallVectorImpl<Type>& types) {
  auto matrix = dyn_cast<RankedTensorType>(adaptor.getMatrix().getType());
  return matrix && matrix.getRank() > 0 ? appendActivations(adaptor.getX(), matrix.getDimSize(0), types) : failure();
}

LogicalResult MatmulOp::verify() {
  if (features(getX()) != features(getMatrix()))
    return emitOpError() << "takes " << features(getX()) << " features, but its matrix " << getMatrix().getType()
                         << " has " << features(getMatrix()) << " columns";
  return success();
}

LogicalResult BiasAddOp::verify() {
  if (features(getX()) != getBias().getType().getCols())
    return emitOpError() << "adds to " << features(getX()) << " features, but its bias " << getBias().getType()
                         << " has " << getBias().getType().getCols() << " values";
  return success();
}

void FusedMatmulOp::build(OpBuilder& builder, OperationState& state, Value x, ValueRange weights,
                          ArrayRef<Value> biases, Value residual, ArmAttr arm) {
  SmallVector<Value> present;
  SmallVector<bool> biased;
  for (Value bias : biases) {
    biased.push_back(bool(bias));
    if (bias)
      present.push_back(bias);
  }
  SmallVector<Type> types;
  for (Value weight : weights)
    (void)appendActivations(x, cast<WeightType>(weight.getType()).getRows(), types);
  build(builder, state, types, x, weights, present, residual,
        present.empty() ? DenseBoolArrayAttr() : builder.getDenseBoolArrayAttr(biased), arm);
}

LogicalResult FusedMatmulOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor adaptor,
                                              SmallVectorImpl<Type>& types) {
  for (Value weight : adaptor.getWeights()) {
    auto type = dyn_cast<WeightType>(weight.getType());
    if (!type || failed(appendActivations(adaptor.getX(), type.getRows(), types)))
      return failure();
  }
  return success();
}

WeightType FusedMatmulOp::getWeightType(unsigned part) {
  return cast<WeightType>(getWeights()[part].getType());
}

Value FusedMatmulOp::getBiasOf(unsigned part) {
  const std::optional<ArrayRef<bool>> biased = getBiased();
  if (!biased || !(*biased)[part])
    return {};
  return getBiases()[llvm::count(biased->take_front(part), true)];
}

LogicalResult FusedMatmulOp::verify() {
  if (getWeights().empty())
    return emitOpError("needs at least one weight");
  for (unsigned i = 0; i < getWeights().size(); ++i)
    if (getWeightType(i).getCols() != features(getX()))
      return emitOpError() << "takes " << features(getX()) << " features, but weight " << i << ", " << getWeightType(i)
                           << ", has " << getWeightType(i).getCols() << " columns";
  if (const std::optional<ArrayRef<bool>> biased = getBiased()) {
    if (biased->size() != getWeights().size())
      return emitOpError() << "'biased' has " << biased->size() << " entries for " << getWeights().size() << " weights";
    const size_t count = llvm::count(*biased, true);
    if (count != getBiases().size())
      return emitOpError() << "'biased' announces " << count << " biases, but there are " << getBiases().size();
  } else if (!getBiases().empty()) {
    return emitOpError() << "has " << getBiases().size() << " biases, but no 'biased' that says whose they are";
  }
  for (unsigned i = 0; i < getWeights().size(); ++i) {
    Value bias = getBiasOf(i);
    if (bias && cast<WeightType>(bias.getType()).getCols() != getWeightType(i).getRows())
      return emitOpError() << "bias " << bias.getType() << " of weight " << i << " has "
                           << cast<WeightType>(bias.getType()).getCols() << " values for its "
                           << getWeightType(i).getRows() << " rows";
  }
  if (getResidual()) {
    if (getWeights().size() != 1)
      return emitOpError() << "a residual needs a single weight, but there are " << getWeights().size();
    if (getResidual().getType() != getParts()[0].getType())
      return emitOpError() << "residual " << getResidual().getType() << " differs from the result "
                           << getParts()[0].getType();
  }
  return success();
}

//===--- Norms
//------------------------------------------------------------------------------------------------------===//

int64_t RmsNormOp::getGroupSize() {
  return getGroup().value_or(features(getX()));
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyEps(*this, getEps())))
    return failure();
  const int64_t group = getGroupSize();
  if (group <= 0 || features(getX()) % group != 0)
    return emitOpError() << "has groups of " << group << ", which do not divide " << features(getX()) << " features";
  return getWeight() ? verifyNormWeight(*this, getWeight().getType(), group) : success();
}

LogicalResult AddRmsNormOp::verify() {
  if (failed(verifyEps(*this, getEps())))
    return failure();
  return verifyNormWeight(*this, getWeight().getType(), features(getA()));
}

//===--- Attention
//--------------------------------------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  const int64_t head = getHeadDim(), rotated = 2 * getRope().getInverseFrequencies().size();
  if (head <= 0 || features(getX()) % head != 0)
    return emitOpError() << "has heads of " << head << ", which do not divide " << features(getX()) << " features";
  if (rotated > head)
    return emitOpError() << "rotates " << rotated << " features of heads of " << head;
  return success();
}

int64_t AttentionOp::getAnchorCount() {
  return getAnchorKeys() ? getAnchorKeys().getType().getCols() / static_cast<int64_t>(getKvHeads() * getHeadDim()) : 0;
}

static LogicalResult verifyAnchors(AttentionOp op) {
  const int64_t kvHeads = op.getKvHeads();
  if (std::optional<ArrayRef<int64_t>> windows = op.getGroupWindows()) {
    if (!op.getWindow() || static_cast<int64_t>(windows->size()) != kvHeads)
      return op.emitOpError() << "has " << windows->size()
                              << " windows of groups, but needs a window and one of each of " << kvHeads
                              << " key/value heads";
    for (int64_t window : *windows)
      if (window < 1 || window > static_cast<int64_t>(*op.getWindow()))
        return op.emitOpError() << "has a window of " << window << ", not within 1 and its window " << *op.getWindow();
  }
  if (!op.getStill())
    return success();
  const int64_t keys = op.getAnchorKeys().getType().getCols(), values = op.getAnchorValues().getType().getCols();
  const int64_t count = op.getAnchorCount();
  if (op.getStill().getType() != op.getQ().getType())
    return op.emitOpError() << "has queries " << op.getQ().getType() << ", but still ones " << op.getStill().getType();
  if (count < 1 || keys != count * kvHeads * static_cast<int64_t>(op.getHeadDim()) ||
      values != count * kvHeads * static_cast<int64_t>(op.getVDim()))
    return op.emitOpError() << "has anchors of " << keys << " and " << values << " values, which " << kvHeads
                            << " key/value heads cannot share";
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyCount(*this, "heads", getHeads())) || failed(verifyCount(*this, "kv_heads", getKvHeads())) ||
      failed(verifyCount(*this, "head_dim", getHeadDim())) || failed(verifyCount(*this, "v_dim", getVDim())) ||
      failed(verifyPositive(*this, "scale", getScale())))
    return failure();
  if (static_cast<int64_t>(getLayer()) < 0)
    return emitOpError() << "'layer' must not be negative";
  if (getHeads() % getKvHeads() != 0)
    return emitOpError() << "has " << getHeads() << " heads, not a multiple of its " << getKvHeads()
                         << " key/value heads";
  struct Operand {
    StringRef what;
    Value value;
    uint64_t heads, size;
  };
  const Operand operands[] = {{"queries", getQ(), getHeads(), getHeadDim()},
                              {"keys", getK(), getKvHeads(), getHeadDim()},
                              {"values", getV(), getKvHeads(), getVDim()},
                              {"results", getResult(), getHeads(), getVDim()}};
  for (const Operand& operand : operands)
    if (features(operand.value) != static_cast<int64_t>(operand.heads * operand.size))
      return emitOpError() << operand.what << " have " << features(operand.value) << " features, not the "
                           << operand.heads << " x " << operand.size << " of its heads";
  if (cast<RankedTensorType>(getQ().getType()).getDimSize(0) !=
      cast<RankedTensorType>(getResult().getType()).getDimSize(0))
    return emitOpError() << "has queries " << getQ().getType() << ", but results " << getResult().getType();
  if (getSinks() && getSinks().getType().getCols() != static_cast<int64_t>(getHeads()))
    return emitOpError() << "has " << getSinks().getType().getCols() << " sinks for " << getHeads() << " heads";
  if (std::optional<uint64_t> window = getWindow())
    if (failed(verifyCount(*this, "window", static_cast<int64_t>(*window))))
      return failure();
  if (getRing() && !getWindow())
    return emitOpError("has a 'ring' without a 'window'");
  if (std::optional<APFloat> cap = getSoftcap())
    if (failed(verifyPositive(*this, "softcap", *cap)))
      return failure();
  if (failed(verifyAnchors(*this)))
    return failure();
  if (getTemperatureLength().has_value() != getTemperatureScale().has_value())
    return emitOpError("needs both of 'temperature_length' and 'temperature_scale', or neither");
  if (getTemperatureLength() && failed(verifyPositive(*this, "temperature_length", *getTemperatureLength())))
    return failure();
  if (getTemperatureScale() && !getTemperatureScale()->isFinite())
    return emitOpError("'temperature_scale' is not finite");
  return success();
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyEps(*this, getEps())))
    return failure();
  if (getBias() && !getWeight())
    return emitOpError("has a bias, but no weight");
  for (Value vector : {Value(getWeight()), Value(getBias())})
    if (vector && failed(verifyNormWeight(*this, cast<WeightType>(vector.getType()), features(getX()))))
      return failure();
  return success();
}

//===--- Element by element
//-----------------------------------------------------------------------------------------===//

LogicalResult GluOp::verify() {
  const bool numbers = getActivation() == Activation::situ || getActivation() == Activation::swigluoai;
  if (numbers != getAlpha().has_value() || numbers != getLimit().has_value())
    return emitOpError() << "of activation " << stringifyActivation(getActivation())
                         << (numbers ? " needs 'alpha' and 'limit'" : " takes neither 'alpha' nor 'limit'");
  if (getAlpha() && failed(verifyPositive(*this, "alpha", *getAlpha())))
    return failure();
  if (getLimit() && (!getLimit()->isFinite() || getLimit()->isNegative() ||
                     (getActivation() == Activation::swigluoai && getLimit()->isZero())))
    return emitOpError("'limit' must be a number, positive for swigluoai");
  return success();
}

LogicalResult ActivateOp::verify() {
  if (getActivation() == Activation::situ || getActivation() == Activation::swigluoai)
    return emitOpError() << "knows no activation " << stringifyActivation(getActivation()) << ": it needs a gate";
  return success();
}
LogicalResult AddOp::verify() {
  return success();
}

LogicalResult ScaleOp::verify() {
  if (!getFactor().isFinite())
    return emitOpError("'factor' is not finite");
  return success();
}

LogicalResult SoftcapOp::verify() {
  return verifyPositive(*this, "cap", getCap());
}

} // namespace cortiq::cmf

#define GET_OP_CLASSES
#include "dialects/CMF/IR/CMFOps.cpp.inc"
