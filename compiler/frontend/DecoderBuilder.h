#pragma once

// From a model's description to its IR.

#include "compiler/frontend/ModelDescription.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cortiq::compiler {

/// The module of `model`: unfused, with `@forward` and `cmf.model`. Which operations a layer has follows from the
/// weights and numbers that are there: biases, head norms, sandwich norms, sinks, windows, caps, a head of its own. The
/// dialects it needs are loaded into `context`.
mlir::OwningOpRef<mlir::ModuleOp> buildModule(mlir::MLIRContext& context, const ModelDescription& model);

} // namespace cortiq::compiler
