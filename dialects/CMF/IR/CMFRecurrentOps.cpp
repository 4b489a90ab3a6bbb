#include "dialects/CMF/IR/CMF.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

// Far beyond every model; keeps products of three such numbers in 64 bits.
constexpr uint64_t kMaxCount = uint64_t{1} << 20;

int64_t features(Value activations) {
  return cast<RankedTensorType>(activations.getType()).getDimSize(1);
}

struct Count {
  StringRef name;
  uint64_t value;
};

LogicalResult verifyCounts(Operation* op, ArrayRef<Count> counts, int64_t state) {
  for (const Count& count : counts)
    if (count.value == 0 || count.value > kMaxCount)
      return op->emitOpError() << "'" << count.name << "' must be within 1 and " << kMaxCount << ", but is "
                               << static_cast<int64_t>(count.value);
  if (state < 0)
    return op->emitOpError() << "'state' must not be negative";
  return success();
}

// An operand and the features (or, for a weight, values) that it must have.
struct Operand {
  StringRef what;
  Value value;
  uint64_t size;
};

LogicalResult verifyOperands(Operation* op, ArrayRef<Operand> operands) {
  const auto tokens = cast<RankedTensorType>(operands[0].value.getType()).getDimSize(0);
  for (const Operand& operand : operands) {
    if (!operand.value)
      continue;
    auto weight = dyn_cast<WeightType>(operand.value.getType());
    const int64_t size = weight ? weight.getCols() : features(operand.value);
    if (size != static_cast<int64_t>(operand.size))
      return op->emitOpError() << "has " << size << " " << (weight ? "values" : "features") << " of '" << operand.what
                               << "', but its heads ask for " << operand.size;
    if (!weight && cast<RankedTensorType>(operand.value.getType()).getDimSize(0) != tokens)
      return op->emitOpError() << "has another number of tokens in '" << operand.what << "' than in '"
                               << operands[0].what << "'";
  }
  return success();
}

LogicalResult verifyEps(Operation* op, const APFloat& eps) {
  if (eps.isFinite() && !eps.isNegative())
    return success();
  return op->emitOpError("'eps' must be a number of at least 0");
}

LogicalResult verifyTaps(Operation* op, WeightType taps, int64_t channels, int64_t state) {
  if (state < 0)
    return op->emitOpError() << "'state' must not be negative";
  if (taps.getRows() != channels)
    return op->emitOpError() << "convolves " << channels << " channels, but its taps " << taps << " have "
                             << taps.getRows() << " rows";
  if (taps.getCols() < 2)
    return op->emitOpError() << "has " << taps.getCols() << " tap a channel: a convolution needs at least 2";
  return success();
}

} // namespace

int64_t CausalConvOp::getStateSize() {
  return (getTaps().getType().getCols() - 1) * features(getX());
}

LogicalResult CausalConvOp::verify() {
  return verifyTaps(*this, getTaps().getType(), features(getX()), getState());
}

int64_t ShortConvOp::getStateSize() {
  return (getTaps().getType().getCols() - 1) * features(getResult());
}

LogicalResult ShortConvOp::verify() {
  const int64_t channels = features(getResult());
  if (failed(verifyTaps(*this, getTaps().getType(), channels, getState())))
    return failure();
  if (features(getBcx()) != 3 * channels)
    return emitOpError() << "takes " << features(getBcx()) << " features, not three times its " << channels
                         << " channels";
  return verifyOperands(*this, {{"bcx", getBcx(), static_cast<uint64_t>(3 * channels)},
                                {"result", getResult(), static_cast<uint64_t>(channels)}});
}

int64_t GatedDeltaOp::getStateSize() {
  return getValueHeads() * getKeyDim() * getValueDim();
}

LogicalResult GatedDeltaOp::verify() {
  const uint64_t keys = getKeyHeads(), values = getValueHeads(), keyDim = getKeyDim(), valueDim = getValueDim();
  if (failed(verifyCounts(*this,
                          {{"key_heads", keys}, {"value_heads", values}, {"key_dim", keyDim}, {"value_dim", valueDim}},
                          getState())) ||
      failed(verifyEps(*this, getEps())))
    return failure();
  if (values % keys != 0)
    return emitOpError() << "has " << values << " value heads, not a multiple of its " << keys << " key heads";
  return verifyOperands(*this, {{"qkv", getQkv(), 2 * keys * keyDim + values * valueDim},
                                {"z", getZ(), values * valueDim},
                                {"a", getA(), values},
                                {"b", getB(), values},
                                {"decay", getDecay(), values},
                                {"dt_bias", getDtBias(), values},
                                {"norm", getNorm(), valueDim},
                                {"result", getResult(), values * valueDim}});
}

int64_t KdaOp::getStateSize() {
  return getHeads() * getKeyDim() * getValueDim();
}

LogicalResult KdaOp::verify() {
  const uint64_t heads = getHeads(), keyDim = getKeyDim(), valueDim = getValueDim();
  if (failed(verifyCounts(*this, {{"heads", heads}, {"key_dim", keyDim}, {"value_dim", valueDim}}, getState())) ||
      failed(verifyEps(*this, getEps())))
    return failure();
  if (getLowerBound() && !getLowerBound()->isFinite())
    return emitOpError("'lower_bound' is not finite");
  const uint64_t decays = getDecay().getType().getCols();
  if (decays != heads && decays != keyDim && decays != heads * keyDim)
    return emitOpError() << "has " << decays << " values of 'decay', which are neither one a head (" << heads
                         << ") nor one a channel (" << keyDim << ") nor both";
  return verifyOperands(*this, {{"q", getQ(), heads * keyDim},
                                {"k", getK(), heads * keyDim},
                                {"v", getV(), heads * valueDim},
                                {"f", getF(), heads * keyDim},
                                {"b", getB(), heads},
                                {"gate", getGate(), heads * valueDim},
                                {"dt_bias", getDtBias(), heads * keyDim},
                                {"norm", getNorm(), valueDim},
                                {"result", getResult(), heads * valueDim}});
}

int64_t VmfPhaseOp::getStateSize() {
  return getHeads() * 2 * getPhases() * getValueDim();
}

LogicalResult VmfPhaseOp::verify() {
  const uint64_t heads = getHeads(), phases = getPhases(), valueDim = getValueDim();
  if (failed(verifyCounts(*this, {{"heads", heads}, {"phases", phases}, {"value_dim", valueDim}}, getState())))
    return failure();
  return verifyOperands(*this, {{"theta_q", getThetaQ(), heads * phases},
                                {"theta_k", getThetaK(), heads * phases},
                                {"v", getV(), heads * valueDim},
                                {"decay", getDecay(), heads * 2 * phases},
                                {"gate", getGate(), heads},
                                {"result", getResult(), heads * valueDim}});
}

std::optional<RecurrentState> recurrentState(Operation* op) {
  return llvm::TypeSwitch<Operation*, std::optional<RecurrentState>>(op)
      .Case<CausalConvOp, ShortConvOp, GatedDeltaOp, KdaOp, VmfPhaseOp>([](auto recurrent) {
        return RecurrentState{static_cast<int64_t>(recurrent.getState()), recurrent.getStateSize()};
      })
      .Default([](Operation*) { return std::nullopt; });
}

} // namespace cortiq::cmf
