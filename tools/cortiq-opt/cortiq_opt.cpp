// cortiq-opt: mlir-opt for our dialects and passes.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"
#include "dialects/Kernel/IR/KernelDialect.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, cortiq::cmf::CMFDialect, cortiq::kernel::KernelDialect,
                  cortiq::vec::VecDialect>();
  cortiq::compiler::registerCortiqPasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "cortiq-opt: runs passes on the compiler's IR\n", registry));
}
