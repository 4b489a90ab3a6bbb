#include "dialects/Vec/Interp/Frame.h"

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

void lookup64(mlir::Operation* op, Frame& frame) {
  const Datum table = frame.lookup(op->getOperand(0)), index = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<uint8_t>(i, table.get<uint8_t>(index.get<uint8_t>(i) & 63));
  frame[op->getResult(0)] = result;
}

void lookup128(mlir::Operation* op, Frame& frame) {
  const Datum index = frame.lookup(op->getOperand(0)), low = frame.lookup(op->getOperand(1)),
              high = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    const uint8_t at = index.get<uint8_t>(i);
    result.set<uint8_t>(i, (at & 64 ? high : low).get<uint8_t>(at & 63));
  }
  frame[op->getResult(0)] = result;
}

void selectNegative(mlir::Operation* op, Frame& frame) {
  const Datum signs = frame.lookup(op->getOperand(0)), negative = frame.lookup(op->getOperand(1)),
              other = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i)
    result.set<uint8_t>(i, (signs.get<int8_t>(i) < 0 ? negative : other).get<uint8_t>(i));
  frame[op->getResult(0)] = result;
}

void blendBits(mlir::Operation* op, Frame& frame) {
  const Datum mask = frame.lookup(op->getOperand(0)), ones = frame.lookup(op->getOperand(1)),
              zeros = frame.lookup(op->getOperand(2));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)) * laneBytes(op->getResult(0)); ++i) {
    const uint8_t m = mask.get<uint8_t>(i);
    result.set<uint8_t>(i, uint8_t((ones.get<uint8_t>(i) & m) | (zeros.get<uint8_t>(i) & ~m)));
  }
  frame[op->getResult(0)] = result;
}

void bitFields(mlir::Operation* op, Frame& frame) {
  const Datum first = frame.lookup(op->getOperand(0)), value = frame.lookup(op->getOperand(1));
  Datum result;
  for (size_t i = 0; i < lanesOf(op->getResult(0)); ++i) {
    const uint64_t bits = value.get<uint64_t>(i / 8);
    const unsigned from = first.get<uint8_t>(i) & 63;
    result.set<uint8_t>(i, uint8_t(from ? bits >> from | bits << (64 - from) : bits));
  }
  frame[op->getResult(0)] = result;
}

} // namespace

void cortiq::vec::interp::addByteOps(OpTable& table) {
  table["vec.bit_fields"] = bitFields;
  table["vec.lookup128"] = lookup128;
  table["vec.lookup64"] = lookup64;
  table["vec.blend_bits"] = blendBits;
  table["vec.select_negative"] = selectNegative;
}
