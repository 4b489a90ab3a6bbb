// cmf-to-kernel: walks @forward once and makes the kernel program of it (compiler/passes/lowering).

#include "compiler/passes/Passes.h"
#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFTOKERNEL
#include "compiler/passes/Passes.h.inc"

namespace {

class CmfToKernel : public impl::CmfToKernelBase<CmfToKernel> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(cmf::kForwardName);
    if (!forward || !forward.getBody().hasOneBlock()) {
      module.emitError() << "has no function @" << cmf::kForwardName << " of one block";
      return signalPassFailure();
    }
    if (!module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr)) {
      module.emitError() << "has no '" << cmf::kTargetAttr << "': run cmf-specialise first";
      return signalPassFailure();
    }
    bool undecided = false;
    forward.walk([&](cmf::WeightOp weight) {
      if (!weight.getLayout() && !undecided) {
        weight.emitOpError() << "has no layout: run cmf-choose-layout first";
        undecided = true;
      }
    });
    if (undecided || failed(Lowering(module, forward).run()))
      return signalPassFailure();
    forward.erase();
  }
};

} // namespace
} // namespace cortiq::compiler
