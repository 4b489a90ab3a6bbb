#include "compiler/pipelines/Pipelines.h"

#include "compiler/passes/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace cortiq::compiler {

void buildGraphPipeline(mlir::OpPassManager& passes, const GraphPipelineOptions& options) {
  passes.addPass(createCmfVerifyModel());
  passes.addPass(createCmfFixTask(CmfFixTaskOptions{options.task}));
  passes.addPass(createCmfFuseDequantMatmul());
  passes.addPass(createCmfFuseMoe());
  passes.addPass(createCmfFuseNormResidual());
  passes.addPass(createCmfFuseQkv());
  passes.addPass(createCmfFuseGateUp());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(createCmfSplitLowRank());
  passes.addPass(createCmfSpecialise(CmfSpecialiseOptions{options.target, options.numerics}));
  passes.addPass(createCmfChooseLayout());
  passes.addPass(createCmfVerifyModel());
}

void buildProgramFinish(mlir::OpPassManager& passes) {
  passes.addPass(createKernelMergeStages());
  passes.addPass(createKernelPlanMemory());
  passes.addPass(createKernelDedupe());
  passes.addPass(createKernelVerifyProgram());
}

void buildProgramPipeline(mlir::OpPassManager& passes) {
  passes.addPass(createCmfToKernel());
  buildProgramFinish(passes);
}

} // namespace cortiq::compiler
