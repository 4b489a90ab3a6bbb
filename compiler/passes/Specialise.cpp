#include "compiler/passes/Passes.h"
#include "compiler/target/target_attr.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFSPECIALISE
#include "compiler/passes/Passes.h.inc"

namespace {

class Specialise : public impl::CmfSpecialiseBase<Specialise> {
public:
  using CmfSpecialiseBase::CmfSpecialiseBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(setTarget(module)) || failed(setNumerics(module)))
      return signalPassFailure();
    auto word = module->getAttrOfType<StringAttr>(cmf::kNumericsAttr).getValue();
    auto arm = cmf::ArmAttr::get(&getContext(), *cmf::symbolizeArm(word));
    module.walk([&](cmf::FusedMatmulOp op) { op.setArmAttr(arm); });
    module.walk([&](cmf::FusedMoeOp op) { op.setArmAttr(arm); });
  }

private:
  LogicalResult setTarget(ModuleOp module) {
    if (!target.empty()) {
      auto found = findTarget(target);
      if (!found.ok())
        return module.emitError() << found.status().message();
      module->setAttr(cmf::kTargetAttr, targetAttr(&getContext(), *found));
    }
    if (!module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr))
      return module.emitError() << "has no '" << cmf::kTargetAttr << "': name a target with cmf-specialise{target=…}";
    return success();
  }

  LogicalResult setNumerics(ModuleOp module) {
    if (!numerics.empty())
      module->setAttr(cmf::kNumericsAttr, StringAttr::get(&getContext(), numerics));
    auto word = module->getAttrOfType<StringAttr>(cmf::kNumericsAttr);
    if (!word || !cmf::symbolizeArm(word.getValue()))
      return module.emitError() << "numerics must be fast or exact: set them with cmf-specialise{numerics=…}";
    return success();
  }
};

} // namespace
} // namespace cortiq::compiler
