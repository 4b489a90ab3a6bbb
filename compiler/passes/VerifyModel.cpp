// cmf-verify-model: is this module one whole model?

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"

#include "llvm/ADT/DenseSet.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFVERIFYMODEL
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

// A positive integer of the model's dictionary.
FailureOr<int64_t> modelSize(ModuleOp module, DictionaryAttr model, StringRef key) {
  auto value = model.getAs<IntegerAttr>(key);
  if (!value || value.getInt() <= 0)
    return module.emitError() << "'" << cmf::kModelAttr << "' needs a positive integer '" << key << "'";
  return value.getInt();
}

LogicalResult verifyForward(ModuleOp module, func::FuncOp forward, int64_t vocab) {
  MLIRContext* context = module.getContext();
  const auto ids = RankedTensorType::get({ShapedType::kDynamic}, IntegerType::get(context, 32));
  const auto logits = RankedTensorType::get({ShapedType::kDynamic, vocab}, Float32Type::get(context));
  const auto expected = FunctionType::get(context, {ids}, {logits});
  const auto guessing = FunctionType::get(context, {ids, ids}, {logits, logits});
  if (forward.getFunctionType() != expected && forward.getFunctionType() != guessing)
    return forward.emitError() << "'@" << cmf::kForwardName << "' has type " << forward.getFunctionType()
                               << ", but a model with " << vocab << " tokens needs " << expected;
  if (!forward.getBody().hasOneBlock())
    return forward.emitError() << "'@" << cmf::kForwardName << "' needs a body of one block";
  return success();
}

LogicalResult verifyLayers(func::FuncOp forward, int64_t layers) {
  int64_t next = 0;
  // The block that guesses has a cache behind those of all layers.
  layers += forward.getNumArguments() == 2 ? 1 : 0;
  for (auto attention : forward.getOps<cmf::AttentionOp>()) {
    const int64_t layer = attention.getLayer();
    if (layer >= layers)
      return attention.emitError() << "is of layer " << layer << ", but the model has " << layers << " layers";
    if (layer < next)
      return attention.emitError() << "is of layer " << layer << ", which comes after layer " << next - 1
                                   << ": each layer has one cache, and layers run in order";
    next = layer + 1;
  }
  return success();
}

LogicalResult verifyStates(func::FuncOp forward) {
  llvm::DenseSet<int64_t> seen;
  for (Operation& op : forward.getBody().front())
    if (const auto state = cmf::recurrentState(&op); state && !seen.insert(state->number).second)
      return op.emitError() << "has state " << state->number << ", which an earlier operation has: each has its own";
  return success();
}

struct Pass : impl::CmfVerifyModelBase<Pass> {
  void runOnOperation() override {
    if (failed(verify(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  static LogicalResult verify(ModuleOp module) {
    auto model = module->getAttrOfType<DictionaryAttr>(cmf::kModelAttr);
    if (!model)
      return module.emitError() << "has no attribute '" << cmf::kModelAttr << "': this is no model";
    for (StringRef key : {"hidden", "layers", "vocab", "trained_context"})
      if (failed(modelSize(module, model, key)))
        return failure();
    auto forward = module.lookupSymbol<func::FuncOp>(cmf::kForwardName);
    if (!forward)
      return module.emitError() << "has no function '@" << cmf::kForwardName << "'";
    if (failed(verifyForward(module, forward, *modelSize(module, model, "vocab"))))
      return failure();
    if (failed(verifyStates(forward)))
      return failure();
    return verifyLayers(forward, *modelSize(module, model, "layers"));
  }
};

} // namespace
} // namespace cortiq::compiler
