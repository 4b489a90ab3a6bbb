// Products of signed bytes and the orders of lanes around them.

#include <bit>
#include <cmath>

#include "dialects/Vec/IR/VecDialect.h"
#include "dialects/Vec/Interp/Frame.h"

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

/// The sum of `count` products of signed bytes.
uint32_t products(const Datum& a, size_t from_a, const Datum& b, size_t from_b, size_t count) {
  int32_t sum = 0;
  for (size_t n = 0; n < count; ++n)
    sum += int32_t{a.get<int8_t>(from_a + n)} * b.get<int8_t>(from_b + n);
  return static_cast<uint32_t>(sum);
}

void signedDot4(mlir::Operation* op, Frame& frame) {
  const Datum acc = frame.lookup(op->getOperand(0)), lhs = frame.lookup(op->getOperand(1)),
              rhs = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<uint32_t>(i, acc.get<uint32_t>(i) + products(lhs, 4 * i, rhs, 4 * i, 4));
  frame[op->getResult(0)] = result;
}

void dot8Pairs(mlir::Operation* op, Frame& frame) {
  const Datum acc = frame.lookup(op->getOperand(0)), lhs = frame.lookup(op->getOperand(1)),
              rhs = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j)
      result.set<uint32_t>(2 * i + j, acc.get<uint32_t>(2 * i + j) + products(lhs, 8 * i, rhs, 8 * j, 8));
  frame[op->getResult(0)] = result;
}

void interleave(mlir::Operation* op, Frame& frame) {
  auto zip = llvm::cast<InterleaveOp>(op);
  const Datum lhs = frame.lookup(zip.getLhs()), rhs = frame.lookup(zip.getRhs());
  const size_t bytes = zip.getBytes(), all = getVectorBits(zip.getType()) / 8;
  Datum result;
  for (size_t at = 0; at < all; ++at) {
    const size_t group = at / bytes;
    const size_t from = (zip.getHigh() ? all / 2 : 0) + group / 2 * bytes + at % bytes;
    result.set<uint8_t>(at, (group % 2 ? rhs : lhs).get<uint8_t>(from));
  }
  frame[zip.getResult()] = result;
}

void deinterleave(mlir::Operation* op, Frame& frame) {
  auto unzip = llvm::cast<DeinterleaveOp>(op);
  const Datum lhs = frame.lookup(unzip.getLhs()), rhs = frame.lookup(unzip.getRhs());
  const size_t lanes = lanesOf(unzip), odd = unzip.getOdd();
  Datum result;
  for (size_t i = 0; i < lanes; ++i)
    result.set<uint32_t>(i, (i < lanes / 2 ? lhs : rhs).get<uint32_t>(i % (lanes / 2) * 2 + odd));
  frame[unzip.getResult()] = result;
}

/// The nearest bf16, halves to even; its bits.
uint16_t toBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  if (std::fpclassify(value) == FP_SUBNORMAL)
    return static_cast<uint16_t>(bits >> 16 & 0x8000);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void packBf16(mlir::Operation* op, Frame& frame) {
  const Datum low = frame.lookup(op->getOperand(0)), high = frame.lookup(op->getOperand(1));
  const size_t lanes = lanesOf(op->getOperand(0));
  Datum result;
  for (size_t i = 0; i < lanes; ++i) {
    result.set<uint16_t>(i, toBf16(low.get<float>(i)));
    result.set<uint16_t>(lanes + i, toBf16(high.get<float>(i)));
  }
  frame[op->getResult(0)] = result;
}

} // namespace

void cortiq::vec::interp::addProductOps(OpTable& table) {
  table["vec.deinterleave"] = deinterleave;
  table["vec.dot8_pairs"] = dot8Pairs;
  table["vec.interleave"] = interleave;
  table["vec.pack_bf16"] = packBf16;
  table["vec.signed_dot4"] = signedDot4;
}
