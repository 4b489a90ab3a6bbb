#pragma once

// Where skills and task masks touch a decoder, beside its weights.

#include "compiler/frontend/GraphBuilder.h"
#include "mlir/IR/BuiltinOps.h"

namespace cortiq::compiler {

/// Closes a layer that made `after` of `before`: gives it a gate where a mask skips it, and a tap where a skill's
/// descriptor reads the residual stream behind it. Returns the layer's result.
mlir::Value endLayer(GraphBuilder& graph, int64_t layer, mlir::Value before, mlir::Value after);

/// Sets `cmf.overlay_catalog`, and `cmf.mask` on every operation that some mask of the model cuts.
void addOverlayPoints(mlir::ModuleOp module, const ModelDescription& model);

} // namespace cortiq::compiler
