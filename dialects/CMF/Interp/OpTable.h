#pragma once

// The reference of every operation: one row each. References of one kind share a file.

#include "dialects/CMF/Interp/Frame.h"

namespace cortiq::cmf {

using OpReference = Status (*)(mlir::Operation* op, Frame& frame);

/// The reference of `op`, or null. cmf.weight and cmf.overlay have none: their bytes are fetched by whoever reads it.
OpReference findReference(mlir::Operation* op);

// Embedding.cpp
Status referenceEmbed(mlir::Operation* op, Frame& frame);
// Linear.cpp
Status referenceDequant(mlir::Operation* op, Frame& frame);
Status referenceMatmul(mlir::Operation* op, Frame& frame);
Status referenceBiasAdd(mlir::Operation* op, Frame& frame);
Status referenceFusedMatmul(mlir::Operation* op, Frame& frame);
// Norm.cpp
Status referenceRmsNorm(mlir::Operation* op, Frame& frame);
Status referenceAddRmsNorm(mlir::Operation* op, Frame& frame);
Status referenceLayerNorm(mlir::Operation* op, Frame& frame);
// Attention.cpp
Status referenceRope(mlir::Operation* op, Frame& frame);
Status referenceAttention(mlir::Operation* op, Frame& frame);
// Gate.cpp
Status referenceGate(mlir::Operation* op, Frame& frame);
// Moe.cpp
Status referenceMoeRoute(mlir::Operation* op, Frame& frame);
Status referenceMoeExperts(mlir::Operation* op, Frame& frame);
Status referenceFusedMoe(mlir::Operation* op, Frame& frame);
// Heads.cpp
Status referenceConcatHeads(mlir::Operation* op, Frame& frame);
Status referenceHeadMatmul(mlir::Operation* op, Frame& frame);
Status referenceClusterLogits(mlir::Operation* op, Frame& frame);
// Pointwise.cpp
Status referenceActivate(mlir::Operation* op, Frame& frame);
Status referenceGlu(mlir::Operation* op, Frame& frame);
Status referenceAdd(mlir::Operation* op, Frame& frame);
Status referenceScale(mlir::Operation* op, Frame& frame);
Status referenceSoftcap(mlir::Operation* op, Frame& frame);
// Recurrent.cpp
Status referenceCausalConv(mlir::Operation* op, Frame& frame);
Status referenceShortConv(mlir::Operation* op, Frame& frame);
Status referenceGatedDelta(mlir::Operation* op, Frame& frame);
Status referenceHadamard(mlir::Operation* op, Frame& frame);
Status referenceResonance(mlir::Operation* op, Frame& frame);
Status referenceKda(mlir::Operation* op, Frame& frame);
Status referenceVmfPhase(mlir::Operation* op, Frame& frame);
// Overlay.cpp
Status referenceLayerGate(mlir::Operation* op, Frame& frame);
Status referencePlace(mlir::Operation* op, Frame& frame);
Status referenceTap(mlir::Operation* op, Frame& frame);
/// Cuts the results of an operation that carries `cmf.mask`, where a mask is in force.
void applyMask(mlir::Operation* op, Frame& frame);

} // namespace cortiq::cmf
