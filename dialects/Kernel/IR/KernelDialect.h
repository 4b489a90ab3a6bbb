#pragma once

// The kernel dialect: see Base.td for what it holds, docs/dialects for the reference generated from the ODS.

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Kernel/IR/KernelDialect.h.inc"
#include "dialects/Kernel/IR/KernelEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/IR/KernelAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Kernel/IR/KernelTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kernel/IR/KernelOps.h.inc"

namespace cortiq::kernel {

/// Attribute of a call: the layer with whose gate it is skipped.
inline constexpr llvm::StringLiteral kGateAttr = "kernel.gate";
/// Attribute of a kernel.weight that is mixed at run time: `parts`, symbols, and `skills`, the skill of each (-1:
/// none).
/// On a product of a matrix: #kernel.path, by kernel-choose-path.
inline constexpr llvm::StringLiteral kPathAttr = "kernel.path";
inline constexpr llvm::StringLiteral kBlendAttr = "kernel.blend";

} // namespace cortiq::kernel
