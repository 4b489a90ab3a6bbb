#pragma once

// Linear scan over structured code, shared by all instruction sets: every register gets one live interval, extended
// over the loops that it lives through; what doesn't fit is spilled, the code is rewritten around its slot, and the
// scan starts again.

#include "codegen/machine/machine_ir.h"
#include "formats/status.h"

namespace cortiq::codegen {

/// What a target offers to the allocator.
struct TargetRegisters {
  std::vector<int8_t> scalar; ///< allocatable registers in order of preference
  std::vector<int8_t> vector;
  /// Rows that fill and spill: `load` has result and memory operand, `store` a use and memory. By class.
  const OperandRules* load[2] = {nullptr, nullptr};
  const OperandRules* store[2] = {nullptr, nullptr};
};

struct Allocation {
  std::vector<int8_t> assigned; ///< physical register of each virtual one; -1: never used, or in a slot
  uint32_t spilled = 0;         ///< virtual registers that live in slots, constants apart
};

/// Live positions of a register: it is live in [start, end). Instruction i reads at 2i and writes at 2i + 1.
struct LiveInterval {
  VReg reg = kNoReg;
  int32_t start = -1;
  int32_t end = -1;
  float weight = 0; ///< accesses, each ten times heavier a loop deeper, by length: small ones are spilled first
};

/// The interval of every register, by register; start is -1 for those that never occur.
std::vector<LiveInterval> live_intervals(const MachineFunction& function);

/// Assigns registers and rewrites `function` where it spills. Fails only when one instruction alone needs more
/// registers than there are, which is a bug of the selector.
StatusOr<Allocation> allocate_registers(MachineFunction& function, const TargetRegisters& registers);

} // namespace cortiq::codegen
