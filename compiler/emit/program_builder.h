#pragma once

// From the kernel dialect to the tables of the artifact schema. Symbols become indices: the n-th weight, kernel, cache
// and rope table of the module is entry n of its table.

#include <memory>
#include <vector>

#include "dialects/Kernel/IR/KernelDialect.h"
#include "formats/artifact/artifact_generated.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// The program of a module that passes kernel-verify-program. Kernel offsets stay 0: the artifact writer sets them.
StatusOr<artifact::ProgramT> buildProgram(mlir::ModuleOp module);

/// The weight table, without offsets; weights of variable size have the least size there is.
StatusOr<std::vector<std::unique_ptr<artifact::WeightT>>> buildWeightTable(mlir::ModuleOp module);

} // namespace cortiq::compiler
