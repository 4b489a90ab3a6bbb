#pragma once

// What turns kernel specs into machine code, so that the rest of the compiler does not depend on how.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernels/kernel_spec.h"
#include "compiler/artifact/writer.h"
#include "dialects/Kernel/IR/KernelDialect.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// Generates kernels of one instruction set. Its functions may be called from several threads.
class KernelEmitter {
public:
  virtual ~KernelEmitter() = default;
  /// The ELF machine that its code is for.
  virtual uint32_t machine() const = 0;
  virtual StatusOr<KernelCode> emit(const codegen::KernelSpec& spec) = 0;
  /// The kernel's vec IR, as it is before instructions are selected.
  virtual StatusOr<std::string> vecText(const codegen::KernelSpec& spec) = 0;
  /// The kernel's assembly.
  virtual StatusOr<std::string> asmText(const codegen::KernelSpec& spec) = 0;
};

/// The emitter for `target`, a name of the target table.
StatusOr<std::unique_ptr<KernelEmitter>> makeKernelEmitter(std::string_view target);

/// Specs of the kernels that `module` declares, in table order.
std::vector<codegen::KernelSpec> declaredKernels(mlir::ModuleOp module);

/// The code of `specs`, in their order, by up to `threads` threads.
StatusOr<std::vector<KernelCode>> generateKernels(const std::vector<codegen::KernelSpec>& specs, KernelEmitter& emitter,
                                                  unsigned threads);

} // namespace cortiq::compiler
