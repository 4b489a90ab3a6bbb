#include "codegen/x86/shorten_live_ranges.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace cortiq::codegen::x86 {
namespace {

/// Whether `value` takes a register now and none after its one use.
bool dies_at_its_use(mlir::Value value, mlir::Block* block) {
  if (!llvm::isa<mlir::VectorType>(value.getType()) || !value.hasOneUse())
    return false;
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
    return argument.getOwner() == block;
  mlir::Operation* op = value.getDefiningOp();
  // A load of one use may be no register at all, but its user's memory operand.
  return op->getBlock() == block && !llvm::isa<vec::LoadOp, vec::ConstantOp>(op);
}

void shorten(mlir::Block& block) {
  for (mlir::Operation& op : llvm::make_early_inc_range(block)) {
    if (op.getNumRegions() > 0 || op.getNumResults() != 1 || !mlir::isMemoryEffectFree(&op) ||
        !llvm::isa<mlir::VectorType>(op.getResult(0).getType()))
      continue;
    mlir::Operation* latest = nullptr;
    bool replaces = false;
    for (mlir::Value operand : op.getOperands()) {
      replaces |= dies_at_its_use(operand, &block);
      mlir::Operation* definition = operand.getDefiningOp();
      if (definition && definition->getBlock() == &block && (!latest || latest->isBeforeInBlock(definition)))
        latest = definition;
    }
    if (replaces && latest && latest->getNextNode() != &op)
      op.moveAfter(latest);
  }
}

} // namespace

void shorten_live_ranges(vec::KernelOp kernel) {
  shorten(kernel.getBlock());
  kernel.getBody().walk([](vec::LoopOp loop) { shorten(loop.getBlock()); });
}

} // namespace cortiq::codegen::x86
