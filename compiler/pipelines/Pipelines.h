#pragma once

// The passes of a compilation, in order.

#include "mlir/Pass/PassManager.h"

namespace cortiq::compiler {

/// From a model as the front end made it to the fused graph, specialised for a target, with layouts. The module has
/// `cmf.target` already, or `target` names one.
struct GraphPipelineOptions {
  std::string target;
  std::string numerics = "fast";
  std::string task = ""; ///< the task mask to make part of the model
};
void buildGraphPipeline(mlir::OpPassManager& passes, const GraphPipelineOptions& options);

/// Stages, memory and kernels of a program whose buffers are not placed yet.
void buildProgramFinish(mlir::OpPassManager& passes);

/// From the graph to a verified program of the kernel dialect.
void buildProgramPipeline(mlir::OpPassManager& passes);

} // namespace cortiq::compiler
