#include "mlir/IR/Dominance.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "codegen/kernels/build_kernel.h"
#include "codegen/x86/x86.h"
#include "compiler/emit/kernel_emitter.h"

namespace cortiq::compiler {
namespace {

class X86Emitter : public KernelEmitter {
public:
  explicit X86Emitter(const codegen::X86Features& features) : features_(features) {}

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
    return codegen::kernel_name(spec) + ":\n" + codegen::print_asm(code);
  }

private:
  // A context a kernel: cheap, and nothing is shared between threads.
  StatusOr<codegen::MachineCode> machineCode(const codegen::KernelSpec& spec) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    CORTIQ_ASSIGN_OR_RETURN(mlir::OwningOpRef<vec::KernelOp> kernel, build(context, spec));
    return codegen::emit_x86(*kernel, features_);
  }

  StatusOr<mlir::OwningOpRef<vec::KernelOp>> build(mlir::MLIRContext& context, const codegen::KernelSpec& spec) {
    context.loadDialect<vec::VecDialect>();
    CORTIQ_ASSIGN_OR_RETURN(mlir::OwningOpRef<vec::KernelOp> kernel,
                            codegen::build_kernel(context, spec,
                                                  {.lanes = features_.max_vector_bits() / 32,
                                                   .dot4 = features_.avx_vnni || features_.avx512_vnni,
                                                   .byte_tables = features_.avx512_vbmi,
                                                   .tiles = features_.amx}));
    mlir::IRRewriter rewriter(&context);
    mlir::DominanceInfo dominance(*kernel);
    mlir::eliminateCommonSubExpressions(rewriter, dominance, *kernel);
    kernel->walk([](mlir::LoopLikeOpInterface loop) { mlir::moveLoopInvariantCode(loop); });
    return kernel;
  }

  codegen::X86Features features_;
};

} // namespace

StatusOr<std::unique_ptr<KernelEmitter>> makeKernelEmitter(std::string_view target) {
  CORTIQ_ASSIGN_OR_RETURN(codegen::X86Features features, codegen::x86_target(target));
  return std::unique_ptr<KernelEmitter>(std::make_unique<X86Emitter>(features));
}

} // namespace cortiq::compiler
