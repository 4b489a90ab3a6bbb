#include "dialects/CMF/IR/CMF.h"

#include <cmath>

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/CMF/IR/CMFEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/CMF/IR/CMFAttrs.cpp.inc"

namespace cortiq::cmf {

void CMFDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/CMF/IR/CMFAttrs.cpp.inc"
      >();
}

int64_t RowsAttr::sourceRow(int64_t row) const {
  if (DenseI64ArrayAttr picks = getPicks())
    row = picks[row];
  if (const int64_t head = getDeinterleave(); head != 0) {
    const int64_t inHead = row % head, half = head / 2;
    row = (row - inHead) + 2 * (inHead % half) + inHead / half;
  }
  if (const int64_t take = getTake(); take != 0)
    row = row / take * getPeriod() + row % take;
  return getFirst() + row;
}
LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t of, int64_t first,
                               int64_t deinterleave, int64_t take, int64_t period, DenseI64ArrayAttr picks) {
  if (picks && (picks.empty() || llvm::any_of(picks.asArrayRef(), [](int64_t pick) { return pick < 0; })))
    return emitError() << "'picks' lists rows, at least one, by numbers from 0";
  if (of <= 0)
    return emitError() << "'of', the rows of the file's tensor, must be positive, not " << of;
  if (first < 0 || first >= of)
    return emitError() << "'first' is row " << first << " of a tensor with " << of << " rows";
  if (deinterleave < 0 || deinterleave % 2 != 0)
    return emitError() << "'deinterleave' is a head size, an even number, not " << deinterleave;
  if ((take == 0) != (period == 0) || take < 0 || period < take)
    return emitError() << "takes " << take << " rows of every " << period << ", which is no part of them";
  if (take != 0 && deinterleave != 0 && take % deinterleave != 0)
    return emitError() << "takes " << take << " rows of every " << period
                       << ", which splits the heads of 'deinterleave'";
  return success();
}

LogicalResult LowRankAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t paths, int64_t rank,
                                  int64_t path) {
  if (paths != 1 && paths != 2)
    return emitError() << "a low-rank payload has one or two paths, not " << paths;
  if (rank < 8 || rank % 8 != 0)
    return emitError() << "a low rank is a multiple of 8 from 8 on, not " << rank;
  if (path < 0 || path > paths)
    return emitError() << "'path' is " << path << ", but there are " << paths << " paths";
  return success();
}

LogicalResult RopeAttr::verify(function_ref<InFlightDiagnostic()> emitError, DenseF32ArrayAttr frequencies,
                               FloatAttr magnitude) {
  if (frequencies.empty())
    return emitError() << "a table of rotary frequencies has at least one entry";
  for (float frequency : frequencies.asArrayRef())
    if (!std::isfinite(frequency))
      return emitError() << "a rotary frequency is not finite";
  if (!magnitude.getType().isF32())
    return emitError() << "'magnitude' must be an f32, not " << magnitude.getType();
  if (!magnitude.getValue().isFinite())
    return emitError() << "'magnitude' is not finite";
  return success();
}

bool TargetAttr::hasFeature(StringRef feature) const {
  return llvm::any_of(getFeatures(),
                      [&](Attribute attr) { return llvm::cast<StringAttr>(attr).getValue() == feature; });
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name, ArrayAttr features,
                                 int64_t vectorBytes, DenseI64ArrayAttr tokenTiles, int64_t l1, int64_t l2,
                                 int64_t cores) {
  for (Attribute feature : features)
    if (!llvm::isa<StringAttr>(feature))
      return emitError() << "'features' holds strings, but one entry is " << feature;
  if (vectorBytes <= 0 || (vectorBytes & (vectorBytes - 1)) != 0)
    return emitError() << "'vector_bytes' must be a power of two, not " << vectorBytes;
  int64_t last = 0;
  for (int64_t tile : tokenTiles.asArrayRef()) {
    if (tile <= last)
      return emitError() << "'token_tiles' must be positive and ascending, but " << tile << " follows " << last;
    last = tile;
  }
  if (tokenTiles.empty() || tokenTiles[0] != 1)
    return emitError() << "'token_tiles' must start with 1";
  if (l1 <= 0 || l2 <= 0 || cores <= 0)
    return emitError() << "'l1', 'l2' and 'cores' must be positive";
  return success();
}

} // namespace cortiq::cmf
