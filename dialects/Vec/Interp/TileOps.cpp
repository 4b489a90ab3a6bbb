#include <bit>
#include <cmath>

#include "dialects/Vec/Interp/Frame.h"

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

void tileConfig(mlir::Operation* op, Frame& frame) {
  auto config = llvm::cast<TileConfigOp>(op);
  frame.tiles = {};
  for (size_t i = 0; i < config.getRows().size(); ++i) {
    frame.tiles.tile[i].rows = static_cast<size_t>(config.getRows()[i]);
    frame.tiles.tile[i].bytes = static_cast<size_t>(config.getBytes()[i]);
  }
}

void tileRelease(mlir::Operation*, Frame& frame) {
  frame.tiles = {};
}

void tileZero(mlir::Operation* op, Frame& frame) {
  frame.tiles.tile[llvm::cast<TileZeroOp>(op).getTile()].row = {};
}

void tileLoad(mlir::Operation* op, Frame& frame) {
  auto load = llvm::cast<TileLoadOp>(op);
  Tiles::Tile& tile = frame.tiles.tile[load.getTile()];
  const uint8_t* from = addressOf(frame, load.getPtr(), load.getOffset());
  for (size_t r = 0; r < tile.rows; ++r)
    std::memcpy(tile.row[r].data(), from + r * load.getStride(), tile.bytes);
}

void tileStore(mlir::Operation* op, Frame& frame) {
  auto store = llvm::cast<TileStoreOp>(op);
  const Tiles::Tile& tile = frame.tiles.tile[store.getTile()];
  uint8_t* to = addressOf(frame, store.getPtr(), store.getOffset());
  for (size_t r = 0; r < tile.rows; ++r)
    std::memcpy(to + r * store.getStride(), tile.row[r].data(), tile.bytes);
}

void tileDot(mlir::Operation* op, Frame& frame) {
  auto dot = llvm::cast<TileDotOp>(op);
  Tiles::Tile& acc = frame.tiles.tile[dot.getAcc()];
  const Tiles::Tile& lhs = frame.tiles.tile[dot.getLhs()];
  const Tiles::Tile& rhs = frame.tiles.tile[dot.getRhs()];
  for (size_t m = 0; m < acc.rows; ++m)
    for (size_t n = 0; n < acc.bytes / 4; ++n) {
      uint32_t sum;
      std::memcpy(&sum, &acc.row[m][4 * n], 4);
      for (size_t k = 0; k < lhs.bytes; ++k)
        sum += static_cast<uint32_t>(static_cast<int8_t>(lhs.row[m][k]) *
                                     static_cast<int8_t>(rhs.row[k / 4][4 * n + k % 4]));
      std::memcpy(&acc.row[m][4 * n], &sum, 4);
    }
}

float withoutSubnormals(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

float bf16At(const std::array<uint8_t, Tiles::kRowBytes>& row, size_t number) {
  uint16_t bits;
  std::memcpy(&bits, &row[2 * number], 2);
  return withoutSubnormals(std::bit_cast<float>(uint32_t{bits} << 16));
}

void tileDotBf16(mlir::Operation* op, Frame& frame) {
  auto dot = llvm::cast<TileDotBf16Op>(op);
  Tiles::Tile& acc = frame.tiles.tile[dot.getAcc()];
  const Tiles::Tile& lhs = frame.tiles.tile[dot.getLhs()];
  const Tiles::Tile& rhs = frame.tiles.tile[dot.getRhs()];
  for (size_t m = 0; m < acc.rows; ++m)
    for (size_t n = 0; n < acc.bytes / 4; ++n) {
      float sums[2] = {0, 0}, sum;
      for (size_t k = 0; k < lhs.bytes / 2; ++k)
        sums[k % 2] =
            withoutSubnormals(std::fma(bf16At(lhs.row[m], k), bf16At(rhs.row[k / 2], 2 * n + k % 2), sums[k % 2]));
      std::memcpy(&sum, &acc.row[m][4 * n], 4);
      sum = withoutSubnormals(withoutSubnormals(sum) + withoutSubnormals(sums[0] + sums[1]));
      std::memcpy(&acc.row[m][4 * n], &sum, 4);
    }
}

} // namespace

void cortiq::vec::interp::addTileOps(OpTable& table) {
  table["vec.tile_config"] = tileConfig;
  table["vec.tile_dot"] = tileDot;
  table["vec.tile_dot_bf16"] = tileDotBf16;
  table["vec.tile_load"] = tileLoad;
  table["vec.tile_release"] = tileRelease;
  table["vec.tile_store"] = tileStore;
  table["vec.tile_zero"] = tileZero;
}
