// Choices by bits of words: masks on AVX-512, blends by whole lanes before it.

#include "codegen/x86/selector.h"

namespace cortiq::codegen::x86 {

std::pair<int, bool> Selector::mask_of(VReg word, uint64_t bits) {
  for (int i = 0; i < kTestMasks; ++i)
    if (tests_[i].word == word && tests_[i].bits == bits)
      return {kFirstTestMask + i, true};
  const int i = next_test_;
  next_test_ = (next_test_ + 1) % kTestMasks;
  tests_[i] = {word, bits};
  return {kFirstTestMask + i, false};
}

int Selector::bits_mask(VReg word, uint64_t bits, unsigned width) {
  const auto [mask, known] = mask_of(word, bits);
  if (!known)
    add({.rules = row("test_bits"), .bits = width, .uses = {word, splat_constant(bits, 4, width)}, .imm = mask});
  return mask;
}

Status Selector::select_negative(vec::SelectNegativeOp op) {
  const unsigned width = width_of(op);
  const VReg signs = reg(op.getSigns());
  if (!features_.avx512) {
    const VReg negative = reg(op.getNegative()), other = reg(op.getOther());
    const VReg def = new_vector(op);
    regs_[op] = def;
    add({.rules = row("vpblendvb"), .bits = width, .def = def, .uses = {other, negative, signs}});
    return {};
  }
  const auto [mask, known] = mask_of(signs, kSignsOfBytes);
  if (!known)
    add({.rules = row("signs_of_bytes"), .bits = width, .uses = {signs}, .imm = mask});
  const VReg other = reg(op.getOther()), negative = reg(op.getNegative());
  const VReg def = new_vector(op);
  regs_[op] = def;
  add({.rules = row("blend_bytes"), .bits = width, .def = def, .uses = {other, negative}, .imm = mask});
  return {};
}

Status Selector::select_bits(vec::SelectBitsOp op) {
  const unsigned width = width_of(op);
  const VReg word = reg(op.getWord()), set = reg(op.getSet()), clear = reg(op.getClear());
  const VReg def = new_vector(op);
  regs_[op] = def;
  if (features_.avx512) {
    const int mask = bits_mask(word, op.getBits(), width);
    add({.rules = row("blend_bits"), .bits = width, .def = def, .uses = {clear, set}, .imm = mask});
    return {};
  }
  const VReg some = add_named("vpand", width, {word, splat_constant(op.getBits(), 4, width)});
  const VReg none = add_named("vpcmpeqd", width, {some, splat_constant(0, 4, width)});
  add({.rules = row("vblendvps"), .bits = width, .def = def, .uses = {set, clear, none}});
  return {};
}

Status Selector::mul_bits(vec::MulBitsOp op) {
  const unsigned width = width_of(op);
  const VReg word = reg(op.getWord()), value = reg(op.getValue()), factor = reg(op.getFactor());
  const VReg def = new_vector(op);
  regs_[op] = def;
  if (features_.avx512) {
    const int mask = bits_mask(word, op.getBits(), width);
    add({.rules = row("mul_bits"), .bits = width, .def = def, .uses = {value, factor}, .imm = mask});
    return {};
  }
  const VReg some = add_named("vpand", width, {word, splat_constant(op.getBits(), 4, width)});
  const VReg none = add_named("vpcmpeqd", width, {some, splat_constant(0, 4, width)});
  const VReg product = add_named("vmulps", width, {value, factor});
  add({.rules = row("vblendvps"), .bits = width, .def = def, .uses = {product, value, none}});
  return {};
}

} // namespace cortiq::codegen::x86
