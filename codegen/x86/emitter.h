#pragma once

// The last step: allocated instructions become bytes, with prologue, loops, moves and the constants behind them.

#include "codegen/machine/constant_pool.h"
#include "codegen/machine/register_allocator.h"
#include "codegen/x86/x86.h"

namespace cortiq::codegen::x86 {

/// The registers the allocator may use, and the rows that it fills and spills with.
TargetRegisters target_registers(const X86Features& features);

/// Bytes of an allocated function.
StatusOr<MachineCode> emit(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
                           const X86Features& features, const X86Options& options);

} // namespace cortiq::codegen::x86
