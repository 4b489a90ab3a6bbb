#pragma once

// From a kernel spec to vec IR.

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "codegen/kernels/kernel_spec.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/status.h"

namespace cortiq::codegen {

/// What a target's vector unit offers to a kernel.
struct VectorUnit {
  unsigned lanes = 8;       ///< 32-bit lanes of a vector: 4, 8 or 16
  bool dot4 = false;        ///< an instruction for vec.dot4
  bool signed_dot4 = false; ///< vec.signed_dot4 is as good as vec.dot4
  bool prefetch = true;     ///< kernels ask memory for weights ahead
  bool byte_tables = false; ///< bytes chosen from tables of 64 and 128 in registers, fields of bits; with 16 lanes
  bool row_pairs = false;   ///< an instruction for vec.dot8_pairs, with 4 lanes
  bool tiles = false;       ///< tile registers of 16 rows of 64 bytes, with 16 lanes
};

/// Builds the kernel of `spec` for a vector unit. Fails, naming codec and shape, when no decoder or layout serves the
/// spec. The op is verified and owned by the caller.
StatusOr<mlir::OwningOpRef<vec::KernelOp>> build_kernel(mlir::MLIRContext& context, const KernelSpec& spec,
                                                        const VectorUnit& unit);

/// Whether build_kernel serves the spec's codec, layout and row length.
Status can_build(const KernelSpec& spec);

} // namespace cortiq::codegen
