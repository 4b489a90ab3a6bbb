// Loads of one use become memory operands of the instruction that uses them.

#include "codegen/x86/selector.h"

namespace cortiq::codegen::x86 {
namespace {

mlir::Value strip_bitcasts(mlir::Value value) {
  while (auto cast = value.getDefiningOp<vec::BitcastOp>()) {
    if (!cast->hasOneUse())
      break;
    value = cast.getValue();
  }
  return value;
}

bool writes_memory(mlir::Operation& op) {
  return op
      .walk([](mlir::Operation* inner) {
        return llvm::isa<vec::StoreOp, vec::TileStoreOp>(inner) ? mlir::WalkResult::interrupt()
                                                                : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

uint8_t Selector::memory_operands(mlir::Operation* user, bool& narrow) const {
  narrow = false;
  const std::string_view name = user->getName().getStringRef();
  if (auto dot = llvm::dyn_cast<vec::Dot4Op>(user)) {
    const bool one_instruction = features_.avx_vnni || features_.avx512_vnni;
    return one_instruction || dot.getUmax() <= kShortDotBound ? 0b100 : 0;
  }
  if (llvm::isa<vec::PairAddOp>(user))
    return 0b1;
  if (llvm::isa<vec::ConvertOp>(user)) {
    // A widening one reads its source's bytes and no more.
    narrow = bits_of(user->getOperand(0)) < bits_of(user->getResult(0));
    return 0b1;
  }
  if (user->getNumResults() != 1 || user->getNumOperands() == 0 || llvm::isa<vec::LoadSplatOp>(user))
    return 0;
  const Row* row = lane_row(name, lane_name(user->getResult(0)), features_);
  return row ? row->memory_operands : 0;
}

Selector::Fold Selector::fold_of(mlir::Operation* user) {
  if (const auto it = folds_.find(user); it != folds_.end())
    return it->second;
  Fold fold;
  bool narrow = false;
  const uint8_t allowed = memory_operands(user, narrow);
  for (unsigned operand = 0; operand < user->getNumOperands() && !fold.load; ++operand) {
    if (!(allowed >> operand & 1))
      continue;
    auto load = strip_bitcasts(user->getOperand(operand)).getDefiningOp<vec::LoadOp>();
    if (!load || !load->hasOneUse() || load.getLanes() || load->getBlock() != user->getBlock() ||
        (!narrow && bits_of(load) < 128))
      continue;
    bool crosses_store = false;
    for (mlir::Operation* between = load->getNextNode(); between != user; between = between->getNextNode())
      crosses_store |= writes_memory(*between);
    if (!crosses_store)
      fold = {.operand = static_cast<int>(operand), .load = load};
  }
  folds_[user] = fold;
  return fold;
}

bool Selector::is_folded(mlir::Operation* load) {
  mlir::Operation* value = load;
  while (value->hasOneUse()) {
    mlir::Operation* user = *value->user_begin();
    if (!llvm::isa<vec::BitcastOp>(user))
      return fold_of(user).load == load;
    value = user;
  }
  return false;
}

void Selector::add_folding(mlir::Operation* op, const Row* row, unsigned bits, VReg def, mlir::ValueRange operands) {
  const Fold fold = fold_of(op);
  Instruction instruction;
  instruction.rules = row;
  instruction.bits = static_cast<uint16_t>(bits);
  instruction.def = def;
  for (size_t operand = 0; operand < operands.size(); ++operand) {
    if (fold.load && op->getOperand(fold.operand) == operands[operand] && instruction.memory_operand < 0) {
      auto load = llvm::cast<vec::LoadOp>(fold.load);
      instruction.mem = memory(load.getPtr(), static_cast<int64_t>(load.getOffset()));
      instruction.memory_operand = static_cast<int8_t>(operand);
    } else {
      instruction.uses[operand] = reg(operands[operand]);
    }
  }
  function_.code.push_back(std::move(instruction));
}

} // namespace cortiq::codegen::x86
