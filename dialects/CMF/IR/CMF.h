#pragma once

// The cmf dialect: types, attributes and operations. See Base.td for what it is.

#include "formats/codec/codec.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/CMF/IR/CMFDialect.h.inc"
#include "dialects/CMF/IR/CMFEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/CMF/IR/CMFTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/CMF/IR/CMFAttrs.h.inc"

namespace cortiq::cmf {

/// What attention and the recurrent operations read and write: the cached keys and values and the recurrent states of
/// one sequence.
struct SequenceState : mlir::SideEffects::Resource::Base<SequenceState> {
  llvm::StringRef getName() final { return "cmf.sequence_state"; }
};

/// Names of the module attributes.
inline constexpr llvm::StringLiteral kModelAttr = "cmf.model";
inline constexpr llvm::StringLiteral kTargetAttr = "cmf.target";
inline constexpr llvm::StringLiteral kNumericsAttr = "cmf.numerics";
/// The function that every module has: ids in, logits out. Models that guess ahead have two of both (DraftSection.h).
inline constexpr llvm::StringLiteral kForwardName = "forward";

} // namespace cortiq::cmf

#define GET_OP_CLASSES
#include "dialects/CMF/IR/CMFOps.h.inc"

namespace cortiq::cmf {

/// What a recurrent operation carries from token to token.
struct RecurrentState {
  int64_t number; ///< of its own in the module
  int64_t size;   ///< numbers (f32)
};

/// The state of a recurrent operation; nothing for any other.
std::optional<RecurrentState> recurrentState(mlir::Operation* op);

} // namespace cortiq::cmf
