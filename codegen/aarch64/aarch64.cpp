#include "codegen/aarch64/aarch64.h"

#include "codegen/aarch64/emitter.h"
#include "codegen/aarch64/reload.h"
#include "codegen/aarch64/selector.h"
#include "codegen/machine/spill.h"

#include "mlir/IR/OwningOpRef.h"

namespace cortiq::codegen {
namespace {

StatusOr<MachineCode> emit_as_ordered(vec::KernelOp kernel, const Aarch64Features& features,
                                      const Aarch64Options& options) {
  aarch64::Selector selector(kernel, features);
  CORTIQ_RETURN_IF_ERROR(selector.run());
  MachineFunction& function = selector.function();
  const TargetRegisters registers = aarch64::target_registers();
  if (!selector.constants_from_pool().empty())
    spill(function, selector.constants_from_pool(), registers);
  CORTIQ_ASSIGN_OR_RETURN(const Allocation allocation, allocate_registers(function, registers));
  return aarch64::emit(function, allocation, selector.pool(), options);
}

} // namespace

StatusOr<MachineCode> emit_aarch64(vec::KernelOp kernel, const Aarch64Features& features,
                                   const Aarch64Options& options) {
  mlir::OwningOpRef<vec::KernelOp> own = llvm::cast<vec::KernelOp>(kernel->clone());
  aarch64::reload_far_uses(*own);
  StatusOr<MachineCode> code = emit_as_ordered(*own, features, options);
  if (!code.ok())
    return code.status().with_prefix("kernel " + kernel.getSymName().str());
  return code;
}

} // namespace cortiq::codegen
