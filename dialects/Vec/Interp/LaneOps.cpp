#include "dialects/Vec/Interp/Frame.h"

#include "formats/codec/half.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <cmath>

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

//===----------------------------------------------------------------------===//
// Lane by lane ops: one functor an op, instantiated for each lane type it takes
//===----------------------------------------------------------------------===//

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct AndNot {
  template <class T>
  T operator()(T a, T b) const {
    return ~a & b;
  }
};
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  uint16_t operator()(uint16_t a, uint16_t b) const { return static_cast<uint16_t>(uint32_t{a} * b); }
};
struct FMin {
  float operator()(float a, float b) const { return a < b ? a : b; }
};
struct FMax {
  float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Div {
  float operator()(float a, float b) const { return a / b; }
};
struct Sign {
  uint8_t operator()(uint8_t x, uint8_t w) const { return w == 0 ? 0 : w & 0x80 ? static_cast<uint8_t>(-x) : x; }
};

template <class T, class F>
Datum lanewise(const Datum& a, const Datum& b, size_t lanes, F f) {
  Datum result;
  for (size_t i = 0; i < lanes; ++i)
    result.set<T>(i, f(a.get<T>(i), b.get<T>(i)));
  return result;
}

/// Integers are computed unsigned, so that they wrap.
template <class F>
void binary(mlir::Operation* op, Frame& frame) {
  const Datum a = frame.lookup(op->getOperand(0)), b = frame.lookup(op->getOperand(1));
  mlir::Value result = op->getResult(0);
  const size_t lanes = lanesOf(result);
  if constexpr (std::is_invocable_v<F, uint8_t, uint8_t> && !std::is_same_v<F, FMin> && !std::is_same_v<F, FMax> &&
                !std::is_same_v<F, Div>) {
    if (laneOf(result).isInteger(8)) {
      frame[result] = lanewise<uint8_t>(a, b, lanes, F());
      return;
    }
    if constexpr (!std::is_same_v<F, Sign>) {
      if (laneOf(result).isInteger(16)) {
        frame[result] = lanewise<uint16_t>(a, b, lanes, F());
        return;
      }
      if (laneOf(result).isInteger(32)) {
        frame[result] = lanewise<uint32_t>(a, b, lanes, F());
        return;
      }
    }
  }
  if constexpr (std::is_same_v<F, Add> || std::is_same_v<F, Sub> || std::is_same_v<F, Mul> || std::is_same_v<F, FMin> ||
                std::is_same_v<F, FMax> || std::is_same_v<F, Div>)
    frame[result] = lanewise<float>(a, b, lanes, F());
}

template <class Op, class U, class F>
Datum shiftLanes(Op op, const Datum& value, F f) {
  Datum result;
  for (size_t i = 0; i < lanesOf(op); ++i)
    result.set<U>(i, static_cast<U>(f(value.get<U>(i), static_cast<unsigned>(op.getAmount()))));
  return result;
}

template <class Op, class T16, class T32, class F>
void shift(mlir::Operation* op, Frame& frame) {
  auto shift = llvm::cast<Op>(op);
  const Datum value = frame.lookup(shift.getValue());
  frame[shift] =
      laneOf(shift).isInteger(16) ? shiftLanes<Op, T16>(shift, value, F()) : shiftLanes<Op, T32>(shift, value, F());
}
struct Left {
  template <class T>
  T operator()(T a, unsigned n) const {
    return a << n;
  }
};
struct Right {
  template <class T>
  T operator()(T a, unsigned n) const {
    return a >> n;
  }
};

void shiftByLanes(mlir::Operation* op, Frame& frame) {
  const Datum value = frame.lookup(op->getOperand(0)), amounts = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<uint32_t>(i, amounts.get<uint32_t>(i) < 32 ? value.get<uint32_t>(i) >> amounts.get<uint32_t>(i) : 0);
  frame[op->getResult(0)] = result;
}

void selectBits(mlir::Operation* op, Frame& frame) {
  auto select = llvm::cast<SelectBitsOp>(op);
  const Datum word = frame.lookup(select.getWord()), set = frame.lookup(select.getSet()),
              clear = frame.lookup(select.getClear());
  Datum result;
  for (size_t i = 0; i < lanesOf(select); ++i)
    result.set<uint32_t>(i, (word.get<uint32_t>(i) & select.getBits() ? set : clear).get<uint32_t>(i));
  frame[select] = result;
}

void mulBits(mlir::Operation* op, Frame& frame) {
  auto mul = llvm::cast<MulBitsOp>(op);
  const Datum word = frame.lookup(mul.getWord()), value = frame.lookup(mul.getValue()),
              factor = frame.lookup(mul.getFactor());
  Datum result;
  for (size_t i = 0; i < lanesOf(mul); ++i)
    result.set<float>(i, word.get<uint32_t>(i) & mul.getBits() ? value.get<float>(i) * factor.get<float>(i)
                                                               : value.get<float>(i));
  frame[mul] = result;
}

template <class T>
void absLanes(const Datum& from, Datum& to, size_t lanes) {
  for (size_t i = 0; i < lanes; ++i) {
    const auto bits = from.get<std::make_unsigned_t<T>>(i);
    to.set(i, static_cast<std::make_unsigned_t<T>>(from.get<T>(i) < 0 ? -bits : bits));
  }
}

void abs(mlir::Operation* op, Frame& frame) {
  const Datum from = frame.lookup(op->getOperand(0));
  mlir::Value result = op->getResult(0);
  Datum to;
  switch (laneBytes(result)) {
  case 1:
    absLanes<int8_t>(from, to, lanesOf(result));
    break;
  case 2:
    absLanes<int16_t>(from, to, lanesOf(result));
    break;
  default:
    absLanes<int32_t>(from, to, lanesOf(result));
    break;
  }
  frame[result] = to;
}

void fma(mlir::Operation* op, Frame& frame) {
  const Datum a = frame.lookup(op->getOperand(0)), b = frame.lookup(op->getOperand(1)),
              c = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<float>(i, std::fma(a.get<float>(i), b.get<float>(i), c.get<float>(i)));
  frame[op->getResult(0)] = result;
}

//===----------------------------------------------------------------------===//
// Ops whose result has other lanes than their operands
//===----------------------------------------------------------------------===//

void constant(mlir::Operation* op, Frame& frame) {
  auto elements = llvm::cast<mlir::DenseElementsAttr>(llvm::cast<ConstantOp>(op).getValue());
  const bool isFloat = llvm::isa<mlir::FloatType>(elements.getElementType());
  Datum result;
  const size_t bytes = laneBytes(op->getResult(0));
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    const uint64_t bits = isFloat ? elements.getValues<llvm::APFloat>()[i].bitcastToAPInt().getZExtValue()
                                  : elements.getValues<llvm::APInt>()[i].getZExtValue();
    std::memcpy(result.bytes.data() + i * bytes, &bits, bytes);
  }
  frame[op->getResult(0)] = result;
}

void bitcast(mlir::Operation* op, Frame& frame) {
  const Datum value = frame.lookup(op->getOperand(0));
  frame[op->getResult(0)] = value;
}

void lookup16(mlir::Operation* op, Frame& frame) {
  const Datum table = frame.lookup(op->getOperand(0)), index = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    const uint8_t choice = index.get<uint8_t>(i);
    result.set<uint8_t>(i, choice & 0x80 ? 0 : table.get<uint8_t>((i & ~size_t{15}) + (choice & 15)));
  }
  frame[op->getResult(0)] = result;
}

int32_t byteProduct(const Datum& u, const Datum& s, size_t lane) {
  return int32_t{u.get<uint8_t>(lane)} * s.get<int8_t>(lane);
}

void dot2(mlir::Operation* op, Frame& frame) {
  const Datum u = frame.lookup(op->getOperand(0)), s = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<int16_t>(i, static_cast<int16_t>(byteProduct(u, s, 2 * i) + byteProduct(u, s, 2 * i + 1)));
  frame[op->getResult(0)] = result;
}

void dot4(mlir::Operation* op, Frame& frame) {
  const Datum acc = frame.lookup(op->getOperand(0)), u = frame.lookup(op->getOperand(1)),
              s = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    int32_t sum = 0;
    for (size_t n = 4 * i; n < 4 * i + 4; ++n)
      sum += byteProduct(u, s, n);
    result.set<uint32_t>(i, acc.get<uint32_t>(i) + static_cast<uint32_t>(sum));
  }
  frame[op->getResult(0)] = result;
}

void pairAdd(mlir::Operation* op, Frame& frame) {
  const Datum value = frame.lookup(op->getOperand(0));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<int32_t>(i, int32_t{value.get<int16_t>(2 * i)} + value.get<int16_t>(2 * i + 1));
  frame[op->getResult(0)] = result;
}

void mulPairs(mlir::Operation* op, Frame& frame) {
  const Datum a = frame.lookup(op->getOperand(0)), b = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    const int64_t sum = int64_t{a.get<int16_t>(2 * i)} * b.get<int16_t>(2 * i) +
                        int64_t{a.get<int16_t>(2 * i + 1)} * b.get<int16_t>(2 * i + 1);
    result.set<uint32_t>(i, static_cast<uint32_t>(sum));
  }
  frame[op->getResult(0)] = result;
}

int32_t nearestInt(float value) {
  // The comparison is false for NaN as well.
  if (!(value >= -0x1p31f && value < 0x1p31f))
    return INT32_MIN;
  return static_cast<int32_t>(std::nearbyint(value)); // the default rounding mode is to nearest even
}

void convert(mlir::Operation* op, Frame& frame) {
  auto convert = llvm::cast<ConvertOp>(op);
  const Datum value = frame.lookup(convert.getValue());
  const mlir::Type from = laneOf(convert.getValue()), to = laneOf(convert);
  Datum result;
  for (size_t i = 0; i < lanesOf(convert); ++i) {
    if (from.isF32()) {
      result.set<int32_t>(i, nearestInt(value.get<float>(i)));
    } else if (from.isF16()) {
      result.set<float>(i, cortiq::formats::half_to_float(value.get<uint16_t>(i)));
    } else if (from.isBF16()) {
      result.set<uint32_t>(i, uint32_t{value.get<uint16_t>(i)} << 16);
    } else if (from.isInteger(32)) {
      result.set<float>(i, static_cast<float>(value.get<int32_t>(i)));
    } else {
      const bool isUnsigned = convert.getIsUnsigned(), byte = from.isInteger(8);
      const int32_t wide = byte ? (isUnsigned ? int32_t{value.get<uint8_t>(i)} : value.get<int8_t>(i))
                                : (isUnsigned ? int32_t{value.get<uint16_t>(i)} : value.get<int16_t>(i));
      if (to.isInteger(16))
        result.set<int16_t>(i, static_cast<int16_t>(wide));
      else
        result.set<int32_t>(i, wide);
    }
  }
  frame[convert] = result;
}

template <class T>
Datum reduce(Datum value, size_t lanes) {
  for (size_t half = lanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      value.set<T>(i, value.get<T>(i) + value.get<T>(i + half));
  Datum result;
  for (size_t i = 0; i < lanes; ++i)
    result.set<T>(i, value.get<T>(0));
  return result;
}

void reduceAdd(mlir::Operation* op, Frame& frame) {
  mlir::Value result = op->getResult(0);
  const Datum value = frame.lookup(op->getOperand(0));
  frame[result] =
      laneOf(result).isF32() ? reduce<float>(value, lanesOf(result)) : reduce<uint32_t>(value, lanesOf(result));
}

} // namespace

void cortiq::vec::interp::addLaneOps(OpTable& table) {
  table["vec.abs"] = abs;
  table["vec.add"] = binary<Add>;
  table["vec.and"] = binary<And>;
  table["vec.and_not"] = binary<AndNot>;
  table["vec.bitcast"] = bitcast;
  table["vec.constant"] = constant;
  table["vec.convert"] = convert;
  table["vec.div"] = binary<Div>;
  table["vec.dot2"] = dot2;
  table["vec.dot4"] = dot4;
  table["vec.fma"] = fma;
  table["vec.fmax"] = binary<FMax>;
  table["vec.fmin"] = binary<FMin>;
  table["vec.lookup16"] = lookup16;
  table["vec.mul"] = binary<Mul>;
  table["vec.mul_pairs"] = mulPairs;
  table["vec.or"] = binary<Or>;
  table["vec.pair_add"] = pairAdd;
  table["vec.reduce_add"] = reduceAdd;
  table["vec.shl"] = shift<ShlOp, uint16_t, uint32_t, Left>;
  table["vec.shr_s"] = shift<ShrSOp, int16_t, int32_t, Right>;
  table["vec.shr_u"] = shift<ShrUOp, uint16_t, uint32_t, Right>;
  table["vec.shr_v"] = shiftByLanes;
  table["vec.select_bits"] = selectBits;
  table["vec.mul_bits"] = mulBits;
  table["vec.sign"] = binary<Sign>;
  table["vec.sub"] = binary<Sub>;
  table["vec.xor"] = binary<Xor>;
}
