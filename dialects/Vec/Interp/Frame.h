#pragma once

// What the interpreter's op functions work on: values by name, lanes by position.

#include "dialects/Vec/IR/VecDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <cstdint>
#include <cstring>

namespace cortiq::vec::interp {

/// A value of any type: a vector's lanes in memory order, or a pointer or index in the first eight bytes.
struct Datum {
  std::array<uint8_t, 64> bytes{};

  template <class T>
  T get(size_t lane) const {
    T value;
    std::memcpy(&value, bytes.data() + lane * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void set(size_t lane, T value) {
    std::memcpy(bytes.data() + lane * sizeof(T), &value, sizeof(T));
  }
};

using Frame = llvm::DenseMap<mlir::Value, Datum>;
using OpFunction = void (*)(mlir::Operation*, Frame&);
using OpTable = llvm::StringMap<OpFunction>;

inline size_t lanesOf(mlir::Value value) {
  return llvm::cast<mlir::VectorType>(value.getType()).getNumElements();
}
inline mlir::Type laneOf(mlir::Value value) {
  return llvm::cast<mlir::VectorType>(value.getType()).getElementType();
}
inline size_t laneBytes(mlir::Value value) {
  return laneOf(value).getIntOrFloatBitWidth() / 8;
}

/// Rows for the ops that compute lanes from lanes.
void addLaneOps(OpTable& table);
/// Rows for addresses, argument fields, loads and stores.
void addMemoryOps(OpTable& table);

} // namespace cortiq::vec::interp
