#pragma once

// The factors of a low-rank weight: W = sum over its paths of U V, each factor an encoded matrix of its own in the
// bytes of the whole.

#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/Builders.h"

namespace cortiq::compiler {

/// The cmf.weight behind `weight` when it is stored as blr, else null.
cmf::WeightOp lowRankWeight(mlir::Value weight);

/// Whether the source of a low-rank weight says of what rank it is.
bool knowsItsRank(cmf::WeightOp whole);

/// Makes the factor `codec` (blr_u or blr_v) of path `path` (from 1) of a low-rank weight; blr_u takes the rows that
/// the whole takes.
cmf::WeightOp lowRankFactor(mlir::OpBuilder& builder, cmf::WeightOp whole, formats::CodecId codec, int64_t path);

} // namespace cortiq::compiler
