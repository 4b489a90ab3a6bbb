#pragma once

// The last step: allocated instructions become bytes, with prologue, loops, moves and the constants behind them.

#include "codegen/aarch64/aarch64.h"
#include "codegen/machine/constant_pool.h"
#include "codegen/machine/register_allocator.h"

namespace cortiq::codegen::aarch64 {

/// The registers the allocator may use, and the rows that it fills and spills with.
TargetRegisters target_registers();

/// Bytes of an allocated function.
StatusOr<MachineCode> emit(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
                           const Aarch64Options& options);

} // namespace cortiq::codegen::aarch64
