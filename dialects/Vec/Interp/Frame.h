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

/// The tile registers.
struct Tiles {
  static constexpr size_t kTiles = 8, kRows = 16, kRowBytes = 64;
  struct Tile {
    size_t rows = 0, bytes = 0; ///< 0: not configured
    std::array<std::array<uint8_t, kRowBytes>, kRows> row{};
  };
  std::array<Tile, kTiles> tile{};
};

/// What a kernel's ops see of each other.
struct Frame : llvm::DenseMap<mlir::Value, Datum> {
  Tiles tiles;
};
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

/// Rows for the ops that move bytes and bits across a vector.
void addByteOps(OpTable& table);
/// Rows for the ops that compute lanes from lanes.
void addLaneOps(OpTable& table);
/// Rows for addresses, argument fields, loads and stores.
void addMemoryOps(OpTable& table);
/// Rows for products of signed bytes.
void addProductOps(OpTable& table);
/// Rows for the ops on tiles.
void addTileOps(OpTable& table);

/// The address in `ptr` plus `offset` bytes.
inline uint8_t* addressOf(const Frame& frame, mlir::Value ptr, int64_t offset) {
  return reinterpret_cast<uint8_t*>(frame.lookup(ptr).get<uintptr_t>(0) + static_cast<uintptr_t>(offset));
}

} // namespace cortiq::vec::interp
