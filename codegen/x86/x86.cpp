#include "codegen/x86/x86.h"

#include "codegen/machine/spill.h"
#include "codegen/x86/emitter.h"
#include "codegen/x86/selector.h"

namespace cortiq::codegen {

StatusOr<MachineCode> emit_x86(vec::KernelOp kernel, const X86Features& features, const X86Options& options) {
  x86::Selector selector(kernel, features);
  const std::string name = kernel.getSymName().str();
  if (const Status status = selector.run(); !status.ok())
    return status.with_prefix("kernel " + name);
  MachineFunction& function = selector.function();
  const TargetRegisters registers = x86::target_registers(features);
  if (!selector.constants_from_pool().empty())
    spill(function, selector.constants_from_pool(), registers);
  StatusOr<Allocation> allocation = allocate_registers(function, registers);
  if (!allocation.ok())
    return allocation.status().with_prefix("kernel " + name);
  StatusOr<MachineCode> code = x86::emit(function, *allocation, selector.pool(), features, options);
  if (!code.ok())
    return code.status().with_prefix("kernel " + name);
  return code;
}

} // namespace cortiq::codegen
