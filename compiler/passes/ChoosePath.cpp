#include "compiler/passes/KernelSpecs.h"
#include "compiler/passes/Passes.h"

#include "codegen/kernels/path_cost.h"
#include "dialects/CMF/IR/CMF.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_KERNELCHOOSEPATH
#include "compiler/passes/Passes.h.inc"

namespace {

constexpr uint64_t kLeastRoom = uint64_t{1} << 20;

using Forced = std::optional<codegen::Path>; ///< none: by cost

/// One part of the option: which weights it speaks of, and what it says.
struct Rule {
  std::optional<llvm::GlobPattern> names; ///< none: all
  Forced path;
};

FailureOr<std::vector<Rule>> readRules(ModuleOp module, StringRef option) {
  std::vector<Rule> rules;
  SmallVector<StringRef> parts;
  option.split(parts, ',');
  for (StringRef part : parts) {
    Rule rule;
    StringRef word = part;
    if (size_t at = part.rfind('='); at != StringRef::npos) {
      word = part.drop_front(at + 1);
      auto names = llvm::GlobPattern::create(part.take_front(at));
      if (!names || at == 0) {
        llvm::consumeError(names.takeError());
        return module.emitError() << "path: '" << part.take_front(at) << "' is no pattern of names", failure();
      }
      rule.names = std::move(*names);
    }
    rule.path = codegen::find_path({word.data(), word.size()});
    if ((!rule.path || *rule.path == codegen::Path::kBf16) && word != "auto")
      return module.emitError() << "path is auto, fused, materialised or tiles, not '" << word << "'", failure();
    rules.push_back(std::move(rule));
  }
  return rules;
}

int64_t femtoseconds(double picoseconds) {
  return std::llround(picoseconds * 1000);
}

class ChoosePath : public impl::KernelChoosePathBase<ChoosePath> {
public:
  using KernelChoosePathBase::KernelChoosePathBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr);
    if (!target) {
      module.emitError() << "needs '" << cmf::kTargetAttr << "'";
      return signalPassFailure();
    }
    FailureOr<std::vector<Rule>> rules = readRules(module, path);
    if (failed(rules))
      return signalPassFailure();
    codegen::PathQuestion question;
    question.room = room ? room : std::max<uint64_t>(target.getL2(), kLeastRoom);
    for (int64_t tokens : target.getTokenTiles().asArrayRef())
      if (tokens < codegen::kTileTokens)
        question.tile = std::max<uint32_t>(question.tile, tokens);
      else
        question.tiles = true;
    question.bf16 = bf16 && llvm::is_contained(target.getFeatures().getAsValueRange<StringAttr>(), "amx_bf16");
    // Models have thousands of matrices and few shapes.
    llvm::DenseMap<std::pair<Attribute, int>, kernel::PathAttr> known;
    bool taken = false; // bf16, by any
    auto choose = [&](auto call) {
      question.forced = forced(*rules, call.getWeight());
      const int key = question.forced ? static_cast<int>(*question.forced) : -1;
      auto [entry, fresh] = known.try_emplace({call.getSpec(), key});
      if (fresh) {
        question.spec = kernelSpec(call.getSpec());
        const codegen::PathChoice choice = codegen::choose_path(question);
        entry->second =
            kernel::PathAttr::get(&getContext(), static_cast<kernel::Path>(choice.path), choice.from_tokens,
                                  femtoseconds(choice.fused), femtoseconds(choice.materialised), choice.why);
      }
      call->setAttr(kernel::kPathAttr, entry->second);
      taken |= entry->second.getPath() == kernel::Path::bf16;
    };
    module.walk([&](kernel::CallOp call) { choose(call); });
    module.walk([&](kernel::ExpertOp expert) { choose(expert); });
    if (taken)
      module.walk([&](kernel::AllocOp alloc) { addBf16(alloc.getBuffer()); });
  }

private:
  /// What holds quantized activations holds them in bf16 too: records are copied between buffers.
  static void addBf16(TypedValue<kernel::BufferType> buffer) {
    const kernel::BufferType type = buffer.getType();
    if (type.getForm() == kernel::Form::q8a)
      buffer.setType(
          kernel::BufferType::get(type.getContext(), kernel::Form::q8a_bf16, type.getElements(), type.getRecords()));
  }

  static Forced forced(const std::vector<Rule>& rules, StringRef weight) {
    Forced path;
    for (const Rule& rule : rules)
      if (!rule.names || rule.names->match(weight))
        path = rule.path;
    return path;
  }
};

} // namespace
} // namespace cortiq::compiler
