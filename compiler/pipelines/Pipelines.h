#pragma once

// The passes of a compilation, in order.

#include "mlir/Pass/PassManager.h"

namespace cortiq::compiler {

/// From a model as the front end made it to the fused graph, which is the same for every target. `task` is the task
/// mask to make part of the model.
void buildFusionPipeline(mlir::OpPassManager& passes, const std::string& task);

/// Specialises a fused graph for its `cmf.target` and chooses layouts.
void buildTargetPipeline(mlir::OpPassManager& passes, const std::string& numerics);

/// How products with many tokens are made: the options of kernel-choose-path.
struct PathOptions {
  std::string path = "auto";
  uint64_t room = 0;
  bool bf16 = false;
};

/// Stages, memory and kernels of a program whose buffers are not placed yet.
void buildProgramFinish(mlir::OpPassManager& passes, const PathOptions& options);

/// From the graph to a verified program of the kernel dialect.
void buildProgramPipeline(mlir::OpPassManager& passes, const PathOptions& options);

} // namespace cortiq::compiler
