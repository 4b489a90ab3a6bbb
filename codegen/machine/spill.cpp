#include "codegen/machine/spill.h"

namespace cortiq::codegen {
namespace {

class Rewriter {
public:
  Rewriter(MachineFunction& function, const std::vector<VReg>& regs, const TargetRegisters& registers)
      : function_(function), registers_(registers), now_spilled_(function.vregs.size(), false) {
    for (VReg reg : regs) {
      now_spilled_[reg] = true;
      function.vregs[reg].spilled = true;
    }
  }

  void run() {
    std::vector<Instruction> code = std::move(function_.code);
    for (Instruction& instruction : code)
      rewrite(std::move(instruction));
    function_.code = std::move(code_);
  }

private:
  bool spilled(VReg reg) const { return reg != kNoReg && reg < now_spilled_.size() && now_spilled_[reg]; }

  MemRef home(VReg reg) const {
    MemRef mem;
    if (function_.vregs[reg].constant >= 0)
      mem.constant = function_.vregs[reg].constant;
    else
      mem.slot = reg;
    return mem;
  }

  VReg transient_like(VReg reg) {
    const VRegInfo like = function_.vregs[reg];
    const VReg transient = function_.new_vreg(like.reg_class, like.bits);
    function_.vregs[transient].transient = true;
    return transient;
  }

  VReg reload(VReg reg) {
    Instruction load;
    const VReg transient = transient_like(reg);
    load.rules = registers_.load[static_cast<int>(function_.vregs[reg].reg_class)];
    load.bits = function_.vregs[reg].bits;
    load.def = transient;
    load.mem = home(reg);
    load.memory_operand = 0;
    code_.push_back(std::move(load));
    return transient;
  }

  /// The operand that becomes the instruction's memory operand, or -1. The tied one is written, so it needs a register.
  int foldable_operand(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp || instruction.mem.present())
      return -1;
    int found = -1;
    for (int operand = kMaxOperands - 1; operand >= 0; --operand) {
      const VReg reg = instruction.uses[operand];
      if (!spilled(reg) || !(instruction.rules->memory_operands >> operand & 1))
        continue;
      if (function_.vregs[reg].reg_class == RegClass::kVector && function_.vregs[reg].bits < 128 &&
          !instruction.rules->narrow_memory)
        continue; // the operation would read beyond the slot's contents
      // Twice the same register would need it in a register anyway.
      int same = 0;
      for (VReg use : instruction.uses)
        same += use == reg;
      if (same == 1 && instruction.def != reg)
        found = operand;
    }
    return found;
  }

  void rewrite(Instruction instruction) {
    if (spilled(instruction.def) && function_.vregs[instruction.def].constant >= 0)
      return; // a constant's own definition: nothing reads the register any more
    if (const int operand = foldable_operand(instruction); operand >= 0) {
      instruction.mem = home(instruction.uses[operand]);
      instruction.memory_operand = static_cast<int8_t>(operand);
      instruction.uses[operand] = kNoReg;
    }
    VReg stored = kNoReg;
    for (VReg reg :
         {instruction.uses[0], instruction.uses[1], instruction.uses[2], instruction.mem.base, instruction.mem.index}) {
      if (!spilled(reg) || !mentions(instruction, reg))
        continue;
      const VReg loaded = reload(reg);
      for (VReg& use : instruction.uses)
        use = use == reg ? loaded : use;
      instruction.mem.base = instruction.mem.base == reg ? loaded : instruction.mem.base;
      instruction.mem.index = instruction.mem.index == reg ? loaded : instruction.mem.index;
      if (instruction.def == reg) { // updated in place
        instruction.def = loaded;
        stored = reg;
      }
    }
    if (spilled(instruction.def)) {
      stored = instruction.def;
      instruction.def = transient_like(stored);
    }
    add_scratch(instruction);
    const VReg result = instruction.def;
    code_.push_back(std::move(instruction));
    if (stored != kNoReg)
      store(result, stored);
  }

  /// Whether `reg` is still read: an earlier turn may have replaced it already.
  static bool mentions(const Instruction& instruction, VReg reg) {
    for (VReg use : instruction.uses)
      if (use == reg)
        return true;
    return instruction.mem.base == reg || instruction.mem.index == reg;
  }

  void store(VReg from, VReg to) {
    Instruction store;
    store.rules = registers_.store[static_cast<int>(function_.vregs[to].reg_class)];
    store.bits = function_.vregs[to].bits;
    store.uses[0] = from;
    store.mem.slot = to;
    code_.push_back(std::move(store));
  }

  void add_scratch(Instruction& instruction) {
    for (const auto& [to, from] : instruction.moves) {
      if (!function_.vregs[to].spilled && !function_.vregs[from].spilled)
        continue;
      const RegClass reg_class = function_.vregs[to].reg_class;
      for (int i : {0, 1})
        if (VReg& scratch = instruction.scratch[2 * static_cast<int>(reg_class) + i]; scratch == kNoReg) {
          scratch = function_.new_vreg(reg_class, 512);
          function_.vregs[scratch].transient = true;
        }
    }
  }

  MachineFunction& function_;
  const TargetRegisters& registers_;
  std::vector<bool> now_spilled_;
  std::vector<Instruction> code_;
};

} // namespace

void spill(MachineFunction& function, const std::vector<VReg>& regs, const TargetRegisters& registers) {
  Rewriter(function, regs, registers).run();
}

} // namespace cortiq::codegen
