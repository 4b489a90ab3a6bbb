#include "compiler/emit/shared_weights.h"

#include "dialects/CMF/IR/CMF.h"
#include "formats/quote.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

std::string targetName(ModuleOp module) {
  auto target = module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr);
  return target ? target.getName().str() : std::string("a target without a name");
}

std::string layoutName(kernel::WeightOp weight) {
  return kernel::stringifyLayout(weight.getLayout()).str();
}

Status differ(ModuleOp first, ModuleOp other, const std::string& what) {
  return unsupported(targetName(first) + " and " + targetName(other) + " cannot share an artifact: " + what +
                     "; compile them apart");
}

Status compare(ModuleOp first, ModuleOp other) {
  auto weights = llvm::to_vector(first.getOps<kernel::WeightOp>());
  auto others = llvm::to_vector(other.getOps<kernel::WeightOp>());
  if (weights.size() != others.size())
    return differ(first, other,
                  "they read " + std::to_string(weights.size()) + " and " + std::to_string(others.size()) + " weights");
  for (auto [a, b] : llvm::zip_equal(weights, others)) {
    // One context holds both modules: equal attributes are the same object. They say all that packing depends on.
    if (a->getAttrDictionary() == b->getAttrDictionary())
      continue;
    const std::string name = formats::quote(a.getSymName().str());
    if (a.getSymName() == b.getSymName() && a.getLayout() != b.getLayout())
      return differ(first, other, "they store weight " + name + " as " + layoutName(a) + " and as " + layoutName(b));
    return differ(first, other, "they store different bytes for weight " + name);
  }
  return {};
}

} // namespace

Status checkSharedWeights(std::span<const TargetProgram> programs) {
  for (const TargetProgram& program : programs.subspan(1))
    CORTIQ_RETURN_IF_ERROR(compare(programs.front().module, program.module));
  return {};
}

} // namespace cortiq::compiler
