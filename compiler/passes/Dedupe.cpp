#include "compiler/passes/KernelSpecs.h"
#include "compiler/passes/Passes.h"

#include "dialects/CMF/IR/CMF.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_KERNELDEDUPE
#include "compiler/passes/Passes.h.inc"

namespace {

class Dedupe : public impl::KernelDedupeBase<Dedupe> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr);
    auto programs = module.getOps<kernel::ProgramOp>();
    if (!target || programs.empty()) {
      module.emitError() << "needs '" << cmf::kTargetAttr << "' and a program";
      return signalPassFailure();
    }
    // Whatever kernels were declared before are derived anew.
    for (auto define : llvm::make_early_inc_range(module.getOps<kernel::DefineOp>()))
      define.erase();
    SymbolTable symbols(module);
    OpBuilder builder(*programs.begin());
    auto group = [&](kernel::CallOp call, int64_t rows) {
      SmallVector<Attribute> kernels;
      for (int64_t tokens : rows > 0 ? target.getTokenTiles().asArrayRef() : ArrayRef<int64_t>()) {
        kernel::SpecAttr spec = call.getSpec().withTile(tokens, rows);
        std::string name = codegen::kernel_name(kernelSpec(spec));
        if (!symbols.lookup(name))
          symbols.insert(builder.create<kernel::DefineOp>(call.getLoc(), builder.getStringAttr(name), spec));
        kernels.push_back(FlatSymbolRefAttr::get(&getContext(), name));
      }
      return builder.getArrayAttr(kernels);
    };
    module.walk([&](kernel::CallOp call) {
      auto weight = symbols.lookup<kernel::WeightOp>(call.getWeight());
      int64_t rows = weight.getRows();
      call.setKernelsAttr(group(call, rows >= formats::kRowGroup ? formats::kRowGroup : 0));
      call.setTailsAttr(group(call, rows % formats::kRowGroup));
    });
  }
};

} // namespace
} // namespace cortiq::compiler
