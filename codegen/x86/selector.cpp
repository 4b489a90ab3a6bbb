#include "codegen/x86/selector.h"

namespace cortiq::codegen::x86 {

Status Selector::run() {
  return select_kernel(Xbyak::Operand::RDI);
}

VReg Selector::add_named(std::string_view name, unsigned bits, std::initializer_list<VReg> uses, int64_t imm,
                         unsigned result_bits) {
  const VReg def = function_.new_vreg(RegClass::kVector, result_bits ? result_bits : bits);
  return add({.rules = row(name), .bits = bits, .def = def, .uses = uses, .imm = imm});
}

/// Tests of bits are forgotten where control flow joins.
Status Selector::select_body(vec::LoopOp loop) {
  tests_.fill({});
  CORTIQ_RETURN_IF_ERROR(MachineSelector::select_body(loop));
  tests_.fill({});
  return {};
}

void Selector::load_constant(VReg def, int32_t number, unsigned bits) {
  if (pool_.is_zero(number))
    add({.rules = row("zero"), .bits = std::max(128u, bits), .def = def});
  else
    add({.rules = row(bits < 128 ? "load8" : "load"),
         .bits = std::max(128u, bits),
         .def = def,
         .mem = {.constant = number}});
}

} // namespace cortiq::codegen::x86
