// Verifiers of the operations on tiles.

#include "dialects/Vec/IR/VecDialect.h"

using namespace mlir;

namespace cortiq::vec {
namespace {

constexpr int64_t kTiles = 8, kRows = 16, kRowBytes = 64;

LogicalResult verifyTile(Operation* op, int64_t tile) {
  if (tile < 0 || tile >= kTiles)
    return op->emitOpError("there is no tile ") << tile << "; tiles are 0 to " << kTiles - 1;
  return success();
}

LogicalResult verifyProduct(Operation* op, int64_t acc, int64_t lhs, int64_t rhs) {
  for (int64_t tile : {acc, lhs, rhs})
    if (failed(verifyTile(op, tile)))
      return failure();
  if (acc == lhs || acc == rhs || lhs == rhs)
    return op->emitOpError("needs three different tiles");
  return success();
}

} // namespace

LogicalResult TileConfigOp::verify() {
  if (getRows().size() != getBytes().size() || getRows().empty() || static_cast<int64_t>(getRows().size()) > kTiles)
    return emitOpError("needs rows and bytes of 1 to ") << kTiles << " tiles";
  for (auto [rows, bytes] : llvm::zip_equal(getRows(), getBytes()))
    if (rows < 1 || rows > kRows || bytes < 4 || bytes > kRowBytes || bytes % 4 != 0)
      return emitOpError("a tile has 1 to ")
             << kRows << " rows of 4 to " << kRowBytes << " bytes in fours, not " << rows << " of " << bytes;
  return success();
}

LogicalResult TileZeroOp::verify() {
  return verifyTile(*this, getTile());
}
LogicalResult TileLoadOp::verify() {
  return verifyTile(*this, getTile());
}
LogicalResult TileStoreOp::verify() {
  return verifyTile(*this, getTile());
}

LogicalResult TileDotOp::verify() {
  return verifyProduct(*this, getAcc(), getLhs(), getRhs());
}
LogicalResult TileDotBf16Op::verify() {
  return verifyProduct(*this, getAcc(), getLhs(), getRhs());
}

} // namespace cortiq::vec
