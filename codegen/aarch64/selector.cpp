#include "codegen/aarch64/selector.h"

namespace cortiq::codegen::aarch64 {

Status Selector::run() {
  return select_kernel(0);
}

/// An op that became part of its user's instruction may have one of its own that nobody reads.
void Selector::finish_ops() {
  std::vector<uint32_t> readers(function_.vregs.size());
  const auto count = [&](const Instruction& instruction, int by) {
    const auto note = [&](VReg reg) {
      if (reg != kNoReg)
        readers[reg] += static_cast<uint32_t>(by);
    };
    for (VReg use : instruction.uses)
      note(use);
    note(instruction.mem.base);
    for (const auto& [to, from] : instruction.moves)
      note(from);
  };
  for (const Instruction& instruction : function_.code)
    count(instruction, 1);
  // Backwards, so that what only a dropped one reads is dropped too.
  std::vector<Instruction> kept;
  for (size_t i = function_.code.size(); i-- > 0;) {
    Instruction& instruction = function_.code[i];
    if (instruction.kind == InstructionKind::kOp && instruction.def != kNoReg && readers[instruction.def] == 0)
      count(instruction, -1);
    else
      kept.push_back(std::move(instruction));
  }
  function_.code.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

VReg Selector::add_named(std::string_view name, std::initializer_list<VReg> uses, int64_t imm) {
  return add({.rules = named_row(name), .def = new_vector(), .uses = uses, .imm = imm});
}

/// Bases that the body computes are of no use behind it: the loop may not run.
Status Selector::select_body(vec::LoopOp loop) {
  const auto outer_bases = far_bases_;
  CORTIQ_RETURN_IF_ERROR(MachineSelector::select_body(loop));
  far_bases_ = outer_bases;
  return {};
}

void Selector::load_constant(VReg def, int32_t number, unsigned) {
  const std::vector<uint8_t>& bytes = pool_.bytes(number);
  const bool one_byte = std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) { return byte == bytes[0]; });
  if (one_byte)
    add({.rules = named_row("splat_byte"), .def = def, .imm = bytes[0]});
  else
    add({.rules = named_row("load"), .def = def, .mem = {.constant = number}});
}

} // namespace cortiq::codegen::aarch64
