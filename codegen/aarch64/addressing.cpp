// Pointers become addresses, not instructions, wherever an immediate or a bumped pointer can hold them.

#include "codegen/aarch64/selector.h"

#include "llvm/Support/MathExtras.h"

namespace cortiq::codegen::aarch64 {
namespace {

/// How far a pair of whole vectors is addressed: whole vectors keep to it, so that two of them can become a pair.
constexpr int64_t kPairReach = 1024;

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

MemRef Selector::memory(mlir::Value ptr, int64_t offset, unsigned bits) {
  Address at = address(ptr);
  at.disp += offset;
  const int64_t size = bits / 8;
  int64_t far = 0;
  if (bits == kVectorBits) {
    if (at.disp % size != 0)
      far = at.disp & ~int64_t{255};
    else
      far = at.disp & ~(kPairReach - 1);
  } else if (at.disp >= 0 && at.disp % size == 0) {
    far = at.disp < 4096 * size ? 0 : at.disp & ~int64_t{4095};
  } else if (!llvm::isInt<9>(at.disp)) {
    far = at.disp & ~int64_t{255};
  }
  if (far != 0)
    at = {.base = base_plus(at.base, far), .disp = at.disp - far};
  return {.base = at.base, .disp = static_cast<int32_t>(at.disp)};
}

MemRef Selector::exact_memory(mlir::Value ptr, int64_t offset) {
  const Address at = address(ptr);
  return {.base = materialise({.base = at.base, .disp = at.disp + offset})};
}

VReg Selector::base_plus(VReg base, int64_t disp) {
  const auto [it, is_new] = far_bases_.try_emplace({base, disp}, kNoReg);
  if (is_new)
    it->second = add({.rules = named_row("add_imm"), .def = new_scalar(), .uses = {base}, .imm = disp});
  return it->second;
}

VReg Selector::materialise(const Address& at) {
  if (at.disp == 0)
    return at.base;
  return add({.rules = named_row("add_imm"), .def = new_scalar(), .uses = {at.base}, .imm = at.disp});
}

VReg Selector::scaled_sum(VReg base, VReg index, int64_t scale) {
  if (llvm::isPowerOf2_64(static_cast<uint64_t>(scale)))
    return add({.rules = named_row("add_shifted"),
                .def = new_scalar(),
                .uses = {base, index},
                .imm = static_cast<int64_t>(llvm::Log2_64(static_cast<uint64_t>(scale)))});
  const VReg product = add({.rules = named_row("mul_imm"), .def = new_scalar(), .uses = {index}, .imm = scale});
  return add({.rules = named_row("add_shifted"), .def = new_scalar(), .uses = {base, product}});
}

void Selector::select_ptr_offset(vec::PtrOffsetOp op) {
  const Address at = address(op.getPtr());
  const int64_t scale = static_cast<int64_t>(op.getScale());
  if (const auto index = index_constant(op.getIndex())) {
    const uint64_t disp = static_cast<uint64_t>(at.disp) + static_cast<uint64_t>(*index) * op.getScale();
    addresses_[op.getResult()] = {.base = at.base, .disp = static_cast<int64_t>(disp)};
    return;
  }
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(op.getIndex()))
    if (const auto it = bumped_.find({argument.getOwner()->getParentOp(), at.base, scale}); it != bumped_.end()) {
      addresses_[op.getResult()] = {.base = it->second, .disp = at.disp};
      return;
    }
  // The displacement stays in the address: pointers that differ by a constant share one register.
  addresses_[op.getResult()] = {.base = scaled_sum(at.base, reg(op.getIndex()), scale), .disp = at.disp};
}

/// Where the factor of the counter is no power of two, a pointer that advances beside the counter saves a product. For
/// the others one sum an iteration is as cheap, and frees the register between.
void Selector::bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps) {
  loop.getBody().walk([&](vec::PtrOffsetOp op) {
    const int64_t scale = static_cast<int64_t>(op.getScale());
    mlir::Value root = root_of(op.getPtr());
    const int64_t step = static_cast<int64_t>(loop.getStep());
    if (op.getIndex() != loop.getInductionVar() || llvm::isPowerOf2_64(static_cast<uint64_t>(scale)) ||
        op->use_empty() || loop.getBody().isAncestor(root.getParentRegion()) || !llvm::isInt<31>(scale) ||
        !llvm::isInt<31>(step))
      return;
    const VReg base = address(root).base;
    VReg& pointer = bumped_[{loop, base, scale}];
    if (pointer != 0)
      return;
    pointer = scaled_sum(base, counter, scale);
    advances_.insert(pointer);
    bumps.emplace_back(pointer, scale * step);
  });
}

} // namespace cortiq::codegen::aarch64
