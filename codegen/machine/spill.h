#pragma once

#include "codegen/machine/register_allocator.h"

namespace cortiq::codegen {

/// Moves `regs` to slots (constants: to their pool entry) and rewrites every instruction around them: as its memory
/// operand where its rules allow that, else through a transient register.
void spill(MachineFunction& function, const std::vector<VReg>& regs, const TargetRegisters& registers);

} // namespace cortiq::codegen
