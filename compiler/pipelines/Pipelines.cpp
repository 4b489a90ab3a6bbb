#include "compiler/pipelines/Pipelines.h"

#include "compiler/passes/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace cortiq::compiler {

void buildFusionPipeline(mlir::OpPassManager& passes, const std::string& task) {
  passes.addPass(createCmfVerifyModel());
  passes.addPass(createCmfFixTask(CmfFixTaskOptions{task}));
  passes.addPass(createCmfFuseDequantMatmul());
  passes.addPass(createCmfFuseMoe());
  passes.addPass(createCmfFuseNormResidual());
  passes.addPass(createCmfFuseQkv());
  passes.addPass(createCmfFuseGateUp());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(createCmfSplitLowRank());
}

void buildTargetPipeline(mlir::OpPassManager& passes, const std::string& numerics) {
  passes.addPass(createCmfSpecialise(CmfSpecialiseOptions{"", numerics}));
  passes.addPass(createCmfChooseLayout());
  passes.addPass(createCmfVerifyModel());
}

void buildProgramFinish(mlir::OpPassManager& passes, const PathOptions& options) {
  passes.addPass(createKernelMergeStages());
  passes.addPass(createKernelChoosePath(KernelChoosePathOptions{options.path, options.room, options.bf16}));
  passes.addPass(createKernelPlanMemory());
  passes.addPass(createKernelDedupe());
  passes.addPass(createKernelVerifyProgram());
}

void buildProgramPipeline(mlir::OpPassManager& passes, const PathOptions& options) {
  passes.addPass(createCmfToKernel());
  buildProgramFinish(passes, options);
}

} // namespace cortiq::compiler
