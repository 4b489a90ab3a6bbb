#include "compiler/passes/MergeMatmuls.h"

using namespace mlir;

namespace cortiq::compiler {

using cmf::FusedMatmulOp;

FusedMatmulOp singleProduct(Value value, bool throughHeads) {
  while (throughHeads) {
    Operation* op = value.getDefiningOp();
    if (!isa_and_nonnull<cmf::RmsNormOp, cmf::RopeOp>(op))
      break;
    value = op->getOperand(0);
  }
  auto product = value.getDefiningOp<FusedMatmulOp>();
  return product && product.getWeights().size() == 1 && !product.getResidual() ? product : FusedMatmulOp();
}

bool shareInput(ArrayRef<FusedMatmulOp> products) {
  for (size_t i = 0; i < products.size(); ++i) {
    FusedMatmulOp product = products[i];
    if (!product || llvm::is_contained(products.take_front(i), product))
      return false;
    FusedMatmulOp first = products[0];
    if (product.getX() != first.getX() || product.getArmAttr() != first.getArmAttr() ||
        product->getBlock() != first->getBlock())
      return false;
  }
  return true;
}

void mergeProducts(RewriterBase& rewriter, ArrayRef<FusedMatmulOp> products) {
  FusedMatmulOp earliest = products[0];
  for (FusedMatmulOp product : products)
    if (product->isBeforeInBlock(earliest))
      earliest = product;

  SmallVector<Value> weights, biases;
  SmallVector<Location> locations;
  for (FusedMatmulOp product : products) {
    weights.push_back(product.getWeights()[0]);
    biases.push_back(product.getBiasOf(0));
    locations.push_back(product.getLoc());
  }
  for (Value operand : llvm::concat<Value>(weights, biases))
    hoistWeight(rewriter, operand, earliest);

  rewriter.setInsertionPoint(earliest);
  FusedMatmulOp first = products[0];
  auto merged = rewriter.create<FusedMatmulOp>(rewriter.getFusedLoc(locations), first.getX(), weights, biases, Value(),
                                               first.getArmAttr());
  for (auto [product, part] : llvm::zip_equal(products, merged.getParts()))
    rewriter.replaceOp(product, part);
}

void hoistWeight(RewriterBase& rewriter, Value weight, Operation* before) {
  Operation* definition = weight ? weight.getDefiningOp() : nullptr;
  if (!definition || definition->getBlock() != before->getBlock() || !before->isBeforeInBlock(definition))
    return;
  for (Value part : definition->getOperands())
    hoistWeight(rewriter, part, before);
  rewriter.moveOpBefore(definition, before);
}

} // namespace cortiq::compiler
