#include "codegen/x86/x86.h"

#include "codegen/machine/spill.h"
#include "codegen/x86/emitter.h"
#include "codegen/x86/selector.h"
#include "codegen/x86/shorten_live_ranges.h"

#include "mlir/IR/OwningOpRef.h"

namespace cortiq::codegen {
namespace {

StatusOr<MachineCode> emit_as_ordered(vec::KernelOp kernel, const X86Features& features, const X86Options& options) {
  x86::Selector selector(kernel, features);
  CORTIQ_RETURN_IF_ERROR(selector.run());
  MachineFunction& function = selector.function();
  const TargetRegisters registers = x86::target_registers(features);
  if (!selector.constants_from_pool().empty())
    spill(function, selector.constants_from_pool(), registers);
  CORTIQ_ASSIGN_OR_RETURN(const Allocation allocation, allocate_registers(function, registers));
  return x86::emit(function, allocation, selector.pool(), features, options);
}

} // namespace

StatusOr<MachineCode> emit_x86(vec::KernelOp kernel, const X86Features& features, const X86Options& options) {
  StatusOr<MachineCode> code = emit_as_ordered(kernel, features, options);
  if (!code.ok())
    return code.status().with_prefix("kernel " + kernel.getSymName().str());
  if (code->spills == 0)
    return code;
  // The builder's order keeps too much alive at once: the same ops in a tighter order may fit.
  mlir::OwningOpRef<vec::KernelOp> reordered = llvm::cast<vec::KernelOp>(kernel->clone());
  x86::shorten_live_ranges(*reordered);
  StatusOr<MachineCode> tighter = emit_as_ordered(*reordered, features, options);
  return tighter.ok() && tighter->spills < code->spills ? tighter : code;
}

} // namespace cortiq::codegen
