#pragma once

// The vec dialect's C++ face: types, ops and the few questions every selector asks about a value.

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace cortiq::vec {

/// True for vectors that one register can hold: 1-D, 32, 64, 128, 256 or 512 bits, no scalable lanes.
bool isRegisterVector(mlir::Type type);

/// Bits of a register vector.
unsigned getVectorBits(mlir::Type type);

/// What prefetches touch: ordered among themselves, apart from all memory.
struct PrefetchResource : mlir::SideEffects::Resource::Base<PrefetchResource> {
  llvm::StringRef getName() final { return "vec.prefetch"; }
};

} // namespace cortiq::vec

#include "dialects/Vec/IR/VecDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Vec/IR/VecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Vec/IR/VecOps.h.inc"
