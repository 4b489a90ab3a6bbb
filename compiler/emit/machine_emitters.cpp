#include "mlir/IR/Dominance.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "codegen/aarch64/aarch64.h"
#include "codegen/kernels/target_units.h"
#include "codegen/x86/x86.h"
#include "compiler/emit/kernel_emitter.h"

namespace cortiq::compiler {
namespace {

/// What every instruction set's emitter does: build the kernel, clean it, hand it over.
class MachineEmitter : public KernelEmitter {
public:
  explicit MachineEmitter(const codegen::VectorUnit& unit) : unit_(unit) {}

  StatusOr<KernelCode> emit(const codegen::KernelSpec& spec) override {
    CORTIQ_ASSIGN_OR_RETURN(codegen::MachineCode code, machineCode(spec));
    // Between the last instruction and the constants stands padding that was never meant to run.
    const uint64_t constants = llvm::alignTo(code.code_bytes, 64);
    const bool hasConstants = constants < code.bytes.size();
    return KernelCode{codegen::kernel_name(spec), std::move(code.bytes), hasConstants ? constants : 0};
  }

  StatusOr<std::string> vecText(const codegen::KernelSpec& spec) override {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    CORTIQ_ASSIGN_OR_RETURN(mlir::OwningOpRef<vec::KernelOp> kernel, build(context, spec));
    std::string text;
    llvm::raw_string_ostream out(text);
    kernel->print(out);
    out << "\n";
    return text;
  }

  StatusOr<std::string> asmText(const codegen::KernelSpec& spec) override {
    CORTIQ_ASSIGN_OR_RETURN(codegen::MachineCode code, machineCode(spec));
    return codegen::kernel_name(spec) + ":\n" + assembly(code);
  }

protected:
  virtual StatusOr<codegen::MachineCode> select(vec::KernelOp kernel) const = 0;
  virtual std::string assembly(const codegen::MachineCode& code) const = 0;

private:
  // A context a kernel: cheap, and nothing is shared between threads.
  StatusOr<codegen::MachineCode> machineCode(const codegen::KernelSpec& spec) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    CORTIQ_ASSIGN_OR_RETURN(mlir::OwningOpRef<vec::KernelOp> kernel, build(context, spec));
    return select(*kernel);
  }

  StatusOr<mlir::OwningOpRef<vec::KernelOp>> build(mlir::MLIRContext& context, const codegen::KernelSpec& spec) {
    context.loadDialect<vec::VecDialect>();
    CORTIQ_ASSIGN_OR_RETURN(mlir::OwningOpRef<vec::KernelOp> kernel, codegen::build_kernel(context, spec, unit_));
    mlir::IRRewriter rewriter(&context);
    mlir::DominanceInfo dominance(*kernel);
    mlir::eliminateCommonSubExpressions(rewriter, dominance, *kernel);
    kernel->walk([](mlir::LoopLikeOpInterface loop) { mlir::moveLoopInvariantCode(loop); });
    return kernel;
  }

  codegen::VectorUnit unit_;
};

class X86Emitter final : public MachineEmitter {
public:
  explicit X86Emitter(const codegen::X86Features& features)
      : MachineEmitter(codegen::vector_unit(features)), features_(features) {}
  uint32_t machine() const override { return kMachineX86_64; }

private:
  StatusOr<codegen::MachineCode> select(vec::KernelOp kernel) const override {
    return codegen::emit_x86(kernel, features_);
  }
  std::string assembly(const codegen::MachineCode& code) const override { return codegen::print_asm(code); }

  codegen::X86Features features_;
};

class Aarch64Emitter final : public MachineEmitter {
public:
  explicit Aarch64Emitter(const codegen::Aarch64Features& features)
      : MachineEmitter(codegen::vector_unit(features)), features_(features) {}
  uint32_t machine() const override { return kMachineAArch64; }

private:
  StatusOr<codegen::MachineCode> select(vec::KernelOp kernel) const override {
    return codegen::emit_aarch64(kernel, features_);
  }
  std::string assembly(const codegen::MachineCode& code) const override { return codegen::print_aarch64_asm(code); }

  codegen::Aarch64Features features_;
};

} // namespace

StatusOr<std::unique_ptr<KernelEmitter>> makeKernelEmitter(std::string_view target) {
  if (const auto arm = codegen::aarch64_target(target); arm.ok())
    return std::unique_ptr<KernelEmitter>(std::make_unique<Aarch64Emitter>(*arm));
  CORTIQ_ASSIGN_OR_RETURN(codegen::X86Features features, codegen::x86_target(target));
  return std::unique_ptr<KernelEmitter>(std::make_unique<X86Emitter>(features));
}

} // namespace cortiq::compiler
