#include "compiler/passes/KernelSpecs.h"
#include "compiler/passes/Passes.h"

#include "dialects/CMF/IR/CMF.h"
#include "formats/layout/layout.h"

#include "llvm/ADT/DenseMap.h"

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
    // Models have thousands of matrices and few shapes.
    llvm::DenseMap<std::pair<Attribute, int64_t>, ArrayAttr> known;
    auto group = [&](Location loc, kernel::SpecAttr whole, int64_t rows) {
      auto [entry, fresh] = known.try_emplace({whole, rows});
      if (!fresh)
        return entry->second;
      SmallVector<Attribute> kernels;
      for (int64_t tokens : rows > 0 ? target.getTokenTiles().asArrayRef() : ArrayRef<int64_t>()) {
        kernel::SpecAttr spec = whole.withTile(tokens, rows);
        if (codegen::takes_many(kernelSpec(spec)) && !codegen::has_tile_kernel(kernelSpec(spec)))
          continue;
        std::string name = codegen::kernel_name(kernelSpec(spec));
        if (!symbols.lookup(name))
          symbols.insert(builder.create<kernel::DefineOp>(loc, builder.getStringAttr(name), spec));
        kernels.push_back(FlatSymbolRefAttr::get(&getContext(), name));
      }
      return entry->second = builder.getArrayAttr(kernels);
    };
    auto list = [&](auto call) {
      int64_t rows = symbols.lookup<kernel::WeightOp>(call.getWeight()).getRows();
      call.setKernelsAttr(group(call.getLoc(), call.getSpec(), rows >= formats::kRowGroup ? formats::kRowGroup : 0));
      call.setTailsAttr(group(call.getLoc(), call.getSpec(), rows % formats::kRowGroup));
    };
    module.walk([&](kernel::CallOp call) { list(call); });
    module.walk([&](kernel::ExpertOp expert) { list(expert); });
  }
};

} // namespace
} // namespace cortiq::compiler
