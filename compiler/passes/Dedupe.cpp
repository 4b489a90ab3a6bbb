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

/// The token tiles of a matrix's kernels: those of few tokens, and one of many where the path has it.
SmallVector<int64_t> tilesOf(cmf::TargetAttr target, kernel::SpecAttr spec, kernel::PathAttr path) {
  SmallVector<int64_t> tiles;
  int64_t many = !path || path.getFrom() == 0           ? 0
                 : path.getPath() == kernel::Path::bf16 ? codegen::kBf16Tokens
                                                        : codegen::kManyTokens;
  for (int64_t tokens : target.getTokenTiles().asArrayRef()) {
    if (tokens < codegen::kTileTokens)
      tiles.push_back(tokens);
    else if (!path && codegen::has_tile_kernel(kernelSpec(spec.withTile(tokens, formats::kRowGroup))))
      many = tokens;
  }
  if (many)
    tiles.push_back(many);
  return tiles;
}

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
    llvm::DenseMap<std::tuple<Attribute, Attribute, int64_t>, ArrayAttr> known;
    auto group = [&](Location loc, kernel::SpecAttr whole, kernel::PathAttr path, int64_t rows) {
      auto [entry, fresh] = known.try_emplace({whole, path, rows});
      if (!fresh)
        return entry->second;
      SmallVector<Attribute> kernels;
      for (int64_t tokens : rows > 0 ? tilesOf(target, whole, path) : SmallVector<int64_t>()) {
        kernel::SpecAttr spec = whole.withTile(tokens, rows);
        if (path && path.getPath() == kernel::Path::bf16 && tokens == codegen::kBf16Tokens)
          spec = spec.withAct(kernel::Form::q8a_bf16);
        std::string name = codegen::kernel_name(kernelSpec(spec));
        auto define = symbols.lookup<kernel::DefineOp>(name);
        if (!define) {
          define = builder.create<kernel::DefineOp>(loc, builder.getStringAttr(name), spec, IntegerAttr());
          symbols.insert(define);
        }
        if (codegen::takes_many(kernelSpec(spec))) // calls of one shape may differ; the earliest is right for some
          define.setFromTokens(
              std::min<int64_t>(define.getFromTokens().value_or(tokens),
                                path ? path.getFrom() : codegen::least_tile_tokens(kernelSpec(spec).isa)));
        kernels.push_back(FlatSymbolRefAttr::get(&getContext(), name));
      }
      return entry->second = builder.getArrayAttr(kernels);
    };
    auto list = [&](auto call) {
      int64_t rows = symbols.lookup<kernel::WeightOp>(call.getWeight()).getRows();
      auto path = call->template getAttrOfType<kernel::PathAttr>(kernel::kPathAttr);
      call.setKernelsAttr(
          group(call.getLoc(), call.getSpec(), path, rows >= formats::kRowGroup ? formats::kRowGroup : 0));
      call.setTailsAttr(group(call.getLoc(), call.getSpec(), path, rows % formats::kRowGroup));
    };
    module.walk([&](kernel::CallOp call) { list(call); });
    module.walk([&](kernel::ExpertOp expert) { list(expert); });
  }
};

} // namespace
} // namespace cortiq::compiler
