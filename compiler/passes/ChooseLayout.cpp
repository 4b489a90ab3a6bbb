#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"
#include "formats/layout/layout.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFCHOOSELAYOUT
#include "compiler/passes/Passes.h.inc"

namespace {

bool isMatmulOperand(Value weight) {
  return llvm::any_of(weight.getUses(), [](OpOperand& use) {
    if (auto overlay = dyn_cast<cmf::OverlayOp>(use.getOwner()))
      return isMatmulOperand(overlay.getResult());
    if (isa<cmf::FusedMoeOp>(use.getOwner()))
      return true; // each of its matrices is multiplied by
    if (isa<cmf::HeadMatmulOp>(use.getOwner()))
      return true;
    auto matmul = dyn_cast<cmf::FusedMatmulOp>(use.getOwner());
    return matmul && llvm::is_contained(matmul.getWeights(), use.get()) &&
           cast<cmf::WeightType>(use.get().getType()).isMatrix();
  });
}

class ChooseLayout : public impl::CmfChooseLayoutBase<ChooseLayout> {
public:
  void runOnOperation() override {
    shareEqualWeights();
    getOperation().walk([&](cmf::WeightOp weight) {
      cmf::WeightType type = weight.getType();
      bool r16 =
          type.isMatrix() && isMatmulOperand(weight) && formats::r16_format(type.getCodec(), type.getCols()).ok();
      weight.setLayoutAttr(cmf::LayoutAttr::get(&getContext(), r16 ? cmf::Layout::r16 : cmf::Layout::verbatim));
    });
  }

private:
  // The first weight of a payload takes the uses of all others that read the same rows of it.
  void shareEqualWeights() {
    llvm::DenseMap<std::tuple<Attribute, Attribute, Type>, cmf::WeightOp> first;
    getOperation().walk([&](cmf::WeightOp weight) {
      if (!weight.getSourceAttr())
        return;
      auto [entry, fresh] = first.try_emplace({weight.getSourceAttr(), weight.getRowsAttr(), weight.getType()}, weight);
      if (fresh)
        return;
      weight.getResult().replaceAllUsesWith(entry->second.getResult());
      weight->erase();
    });
  }
};

} // namespace
} // namespace cortiq::compiler
