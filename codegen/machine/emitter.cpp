#include "codegen/machine/emitter.h"

#include <algorithm>

namespace cortiq::codegen {

void MachineEmitter::emit_code() {
  innermost_.assign(function_.loops, false);
  uint32_t last_begun = 0;
  for (const Instruction& instruction : function_.code)
    if (instruction.kind == InstructionKind::kLoopBegin)
      last_begun = instruction.loop;
    else if (instruction.kind == InstructionKind::kLoopEnd)
      innermost_[instruction.loop] = instruction.loop == last_begun;
  for (size_t i = 0; i < function_.code.size(); ++i) {
    const Instruction& instruction = function_.code[i];
    switch (instruction.kind) {
    case InstructionKind::kOp:
      i += emit_op(i);
      break;
    case InstructionKind::kMoves:
      emit_moves(instruction);
      break;
    case InstructionKind::kLoopBegin:
      begin_loop(instruction);
      break;
    case InstructionKind::kLoopEnd:
      end_loop(instruction);
      break;
    }
  }
}

MachineCode MachineEmitter::facts(size_t code_bytes) {
  MachineCode code;
  code.code_bytes = code_bytes;
  code.spills = allocation_.spilled;
  code.frame_bytes = frame_bytes_;
  code.loops = std::move(loops_);
  return code;
}

bool MachineEmitter::uses(RegClass reg_class, int number) const {
  for (VReg reg = 0; reg < function_.vregs.size(); ++reg)
    if (function_.vregs[reg].reg_class == reg_class && allocation_.assigned[reg] == number)
      return true;
  return false;
}

//--- loops ------------------------------------------------------------------------------------------------------------

void MachineEmitter::begin_loop(const Instruction& instruction) {
  if (!instruction.runs_at_least_once) {
    compare(instruction);
    skip_loop(instruction.loop);
  }
  if (innermost_[instruction.loop])
    align_loop();
  begin_body(instruction.loop);
  open_loops_.push_back(loops_.size());
  loops_.push_back(
      {.begin = offset(), .iterations = instruction.iterations, .step = instruction.step, .limit = instruction.limit});
}

void MachineEmitter::end_loop(const Instruction& instruction) {
  compare(instruction);
  emit_moves(instruction); // leaves the flags
  repeat_loop(instruction.loop);
  bind_end(instruction.loop);
  loops_[open_loops_.back()].end = offset();
  open_loops_.pop_back();
}

//--- moves ------------------------------------------------------------------------------------------------------------

void MachineEmitter::emit_moves(const Instruction& instruction) {
  for (RegClass reg_class : {RegClass::kScalar, RegClass::kVector}) {
    const VReg* free = instruction.scratch + 2 * static_cast<int>(reg_class);
    const MoveScratch scratch{number(free[0]), number(free[1])};
    std::vector<Move> moves;
    for (const auto& [to, from] : instruction.moves)
      if (function_.vregs[to].reg_class == reg_class)
        moves.push_back({place(to), place(from), function_.vregs[to].bits});
    resolve_parallel_moves(std::move(moves), scratch, reg_class, *this);
  }
}

Place MachineEmitter::place(VReg reg) const {
  const VRegInfo& info = function_.vregs[reg];
  if (!info.spilled)
    return {Place::kRegister, allocation_.assigned[reg]};
  if (info.constant >= 0)
    return {Place::kConstant, info.constant};
  return {Place::kSlot, static_cast<int32_t>(reg)};
}

//--- constants --------------------------------------------------------------------------------------------------------

bool MachineEmitter::ask_for_constant(int32_t number) {
  if (number >= static_cast<int32_t>(asked_for_.size()))
    asked_for_.resize(static_cast<size_t>(number) + 1);
  const bool first = !asked_for_[static_cast<size_t>(number)];
  asked_for_[static_cast<size_t>(number)] = true;
  return first;
}

void MachineEmitter::place_constants(uint8_t trap) {
  std::vector<int32_t> used;
  for (size_t number = 0; number < asked_for_.size(); ++number)
    if (asked_for_[number])
      used.push_back(static_cast<int32_t>(number));
  std::sort(used.begin(), used.end(),
            [&](int32_t a, int32_t b) { return std::pair(pool_.alignment(b), a) < std::pair(pool_.alignment(a), b); });
  if (!used.empty())
    pad(kCodeAlignment, trap);
  for (int32_t number : used) {
    pad(pool_.alignment(number), 0);
    place_constant(number);
  }
  pad(kCodeAlignment, 0);
}

} // namespace cortiq::codegen
