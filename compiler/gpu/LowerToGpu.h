#pragma once

// A finished program as dispatches of shaders, beside its form for the CPU.

#include "compiler/gpu/GpuBuilder.h"
#include "formats/artifact/artifact_generated.h"
#include "formats/status.h"

#include "mlir/IR/BuiltinOps.h"

namespace cortiq::compiler {

/// Sets program.gpu and, for `fast`, what takes 8-bit activations where the device has integer dot products. Stages
/// that hold a call without a form on the GPU stay with the CPU. Adds the matrices in layout kPlanes to `weights`.
Status lowerToGpu(mlir::ModuleOp module, GpuWeights& weights, artifact::ProgramT& program);

} // namespace cortiq::compiler
