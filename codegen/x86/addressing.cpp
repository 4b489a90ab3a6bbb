// Pointers become addresses, not instructions, wherever an addressing mode or a bumped pointer can hold them.

#include "codegen/x86/selector.h"

#include "llvm/Support/MathExtras.h"

namespace cortiq::codegen::x86 {
namespace {

bool is_mode_scale(int64_t scale) {
  return scale == 1 || scale == 2 || scale == 4 || scale == 8;
}

/// The loop whose counter `index` is, or null.
vec::LoopOp loop_of_counter(mlir::Value index) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(index);
  return argument && argument.getArgNumber() == 0 ? llvm::dyn_cast<vec::LoopOp>(argument.getOwner()->getParentOp())
                                                  : vec::LoopOp();
}

} // namespace

Selector::Address Selector::address(mlir::Value ptr) {
  if (auto add = ptr.getDefiningOp<vec::PtrAddOp>()) {
    Address at = address(add.getPtr());
    at.disp += static_cast<int64_t>(add.getOffset());
    return at;
  }
  if (const auto it = addresses_.find(ptr); it != addresses_.end())
    return it->second;
  return {.base = regs_.lookup(ptr)};
}

MemRef Selector::memory(mlir::Value ptr, int64_t offset) {
  Address at = address(ptr);
  at.disp += offset;
  return memory(at);
}

MemRef Selector::memory(const Address& at) {
  if (llvm::isInt<32>(at.disp))
    return {.base = at.base, .index = at.index, .scale = at.scale, .disp = static_cast<int32_t>(at.disp)};
  // A displacement beyond 2 GiB takes a register of its own.
  VReg base = at.base;
  if (at.index != kNoReg)
    base = add({.rules = row("lea"),
                .bits = 64,
                .def = new_scalar(),
                .mem = {.base = at.base, .index = at.index, .scale = at.scale}});
  const VReg far = add({.rules = row("mov_imm"), .bits = 64, .def = new_scalar(), .imm = at.disp});
  return {.base = base, .index = far};
}

VReg Selector::materialise(const Address& at) {
  if (at.index == kNoReg && at.disp == 0)
    return at.base;
  return add({.rules = row("lea"), .bits = 64, .def = new_scalar(), .mem = memory(at)});
}

VReg Selector::scaled(VReg index, int64_t scale) {
  if (scale == 1)
    return index;
  if (llvm::isInt<32>(scale) && !llvm::isPowerOf2_64(scale))
    return add({.rules = row("imul"), .bits = 64, .def = new_scalar(), .uses = {index}, .imm = scale});
  // Powers of two, and odd factors beyond 32 bits as a sum of shifts.
  VReg sum = kNoReg;
  for (int bit = 0; bit < 63; ++bit) {
    if (!(scale >> bit & 1))
      continue;
    VReg term = index;
    if (bit > 0)
      term = add({.rules = row("shl"), .bits = 64, .def = new_scalar(), .uses = {index}, .imm = bit});
    sum = sum == kNoReg
              ? term
              : add({.rules = row("lea"), .bits = 64, .def = new_scalar(), .mem = {.base = sum, .index = term}});
  }
  return sum;
}

void Selector::select_ptr_offset(vec::PtrOffsetOp op) {
  Address at = address(op.getPtr());
  const int64_t scale = static_cast<int64_t>(op.getScale());
  if (const auto index = index_constant(op.getIndex())) {
    at.disp = static_cast<int64_t>(static_cast<uint64_t>(at.disp) + static_cast<uint64_t>(*index) * op.getScale());
    addresses_[op.getResult()] = at;
    return;
  }
  if (vec::LoopOp loop = loop_of_counter(op.getIndex())) {
    if (const auto it = bumped_.find({loop, at.base, at.index, at.scale, scale}); it != bumped_.end()) {
      addresses_[op.getResult()] = {.base = it->second, .disp = at.disp};
      return;
    }
    if (at.index == kNoReg && is_mode_scale(scale) && loop->getRegion(0).isAncestor(op->getParentRegion())) {
      addresses_[op.getResult()] = {
          .base = at.base, .index = reg(op.getIndex()), .scale = static_cast<int32_t>(scale), .disp = at.disp};
      return;
    }
  }
  Address sum = at;
  if (sum.index != kNoReg)
    sum = {.base = materialise({.base = at.base, .index = at.index, .scale = at.scale}), .disp = at.disp};
  const bool in_mode = is_mode_scale(scale);
  sum.index = in_mode ? reg(op.getIndex()) : scaled(reg(op.getIndex()), scale);
  sum.scale = in_mode ? static_cast<int32_t>(scale) : 1;
  // The displacement stays in the address: pointers that differ by a constant share one register.
  const int64_t disp = std::exchange(sum.disp, 0);
  addresses_[op.getResult()] = {.base = materialise(sum), .disp = disp};
}

void Selector::bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps) {
  loop.getBody().walk([&](vec::PtrOffsetOp op) {
    const int64_t scale = static_cast<int64_t>(op.getScale());
    mlir::Value root = root_of(op.getPtr());
    const int64_t step = static_cast<int64_t>(loop.getStep());
    if (op.getIndex() != loop.getInductionVar() || is_mode_scale(scale) || op->use_empty() ||
        loop.getBody().isAncestor(root.getParentRegion()) || !llvm::isInt<32>(scale) || !llvm::isInt<32>(step) ||
        !llvm::isInt<32>(scale * step))
      return;
    const Address at = address(root);
    const BumpKey key{loop, at.base, at.index, at.scale, scale};
    if (bumped_.count(key))
      return;
    Address start{.base = at.base, .index = at.index, .scale = at.scale};
    const auto lo = index_constant(loop.getLo());
    if (lo && llvm::isInt<31>(*lo) && llvm::isInt<32>(*lo * scale)) {
      start.disp = *lo * scale;
    } else {
      const VReg first = scaled(counter, scale);
      start = {.base = materialise(start), .index = first};
    }
    const VReg pointer = new_scalar();
    if (start.index == kNoReg && start.disp == 0) {
      function_.vregs[pointer].hint = start.base;
      add({.rules = row("mov"), .bits = 64, .def = pointer, .uses = {start.base}});
    } else {
      add({.rules = row("lea"), .bits = 64, .def = pointer, .mem = memory(start)});
    }
    bumped_[key] = pointer;
    advances_.insert(pointer);
    bumps.emplace_back(pointer, scale * step);
  });
}

} // namespace cortiq::codegen::x86
