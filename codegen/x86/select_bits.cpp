// Choices by bits of words: masks on AVX-512, blends by whole lanes before it.

#include "codegen/x86/selector.h"

namespace cortiq::codegen::x86 {

int Selector::bits_mask(VReg word, uint64_t bits, unsigned width) {
  for (int i = 0; i < kTestMasks; ++i)
    if (tests_[i].word == word && tests_[i].bits == bits)
      return kFirstTestMask + i;
  const int i = next_test_;
  next_test_ = (next_test_ + 1) % kTestMasks;
  tests_[i] = {word, bits};
  add({.rules = row("test_bits"),
       .bits = width,
       .uses = {word, splat_constant(bits, 4, width)},
       .imm = kFirstTestMask + i});
  return kFirstTestMask + i;
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
