#include "dialects/CMF/IR/DraftSection.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

using OpSet = llvm::DenseSet<Operation*>;

bool isWeight(Operation* op) {
  return isa<WeightOp, OverlayOp>(op);
}

// `op` and everything that it depends on.
void addSlice(Operation* op, OpSet& slice) {
  SmallVector<Operation*> pending = {op};
  while (!pending.empty()) {
    op = pending.pop_back_val();
    if (!op || isWeight(op) || !slice.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      pending.push_back(operand.getDefiningOp());
  }
}

} // namespace

DraftSection findDraftSection(func::FuncOp forward) {
  DraftSection section;
  Block& body = forward.getBody().front();
  Operation* end = body.getTerminator();
  if (end->getNumOperands() != 2 || forward.getNumArguments() != 2)
    return section;
  // What depends on the second argument.
  OpSet dependent;
  const Value next = body.getArgument(1);
  for (Operation& op : body.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return operand == next || (operand.getDefiningOp() && dependent.contains(operand.getDefiningOp()));
        }))
      dependent.insert(&op);
  OpSet trunk;
  addSlice(end->getOperand(0).getDefiningOp(), trunk);
  for (Operation& op : body.without_terminator())
    if (!isWeight(&op) && !isMemoryEffectFree(&op) && !dependent.contains(&op))
      addSlice(&op, trunk);
  for (Operation& op : body.without_terminator())
    if (!isWeight(&op) && !trunk.contains(&op))
      section.draft.insert(&op);
  for (Operation& op : body.without_terminator()) {
    if (!section.draft.contains(&op))
      continue;
    for (Value operand : op.getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (!producer || isWeight(producer) || section.draft.contains(producer))
        continue;
      addSlice(producer, section.stream);
      if (!llvm::is_contained(section.crossing, operand))
        section.crossing.push_back(operand);
    }
  }
  return section;
}

} // namespace cortiq::cmf
