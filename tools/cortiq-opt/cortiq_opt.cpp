// cortiq-opt: mlir-opt for our dialects and passes. Exit codes: 0 done, 2 bad input or command line, 1 a bug of
// ours.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/CMF.h"
#include "dialects/Kernel/IR/KernelDialect.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/part_files.h"
#include "formats/quote.h"
#include "formats/status.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/cli/tool_main.h"
#include "tools/llvm_options.h"
#include "tools/llvm_output.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

namespace {

constexpr char kProgram[] = "cortiq-opt";
constexpr llvm::StringLiteral kOverview(R"(Runs passes on the compiler's IR: mlir-opt for the dialects of cortiq.

  cortiq-compile --emit=cmf model.gguf | cortiq-opt --cmf-to-kernel      passes by name, in the order given

Exit status: 0 done, 2 something is wrong with the command or the IR.
)");
constexpr size_t kLooked = 4096; // bytes that tell text from other files
constexpr llvm::StringLiteral kBytecodeMagic("ML\xefR");

/// Refuses what cannot be IR at all. The parser reports what is wrong with a text.
cortiq::Status check_input(const std::string& file) {
  if (file == "-")
    return {};
  const auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return cortiq::io_error("cannot read " + cortiq::formats::quote(file) + ": " + buffer.getError().message());
  const llvm::StringRef content = (*buffer)->getBuffer();
  if (content.empty())
    return cortiq::invalid(cortiq::formats::quote(file) + " is empty");
  if (!content.starts_with(kBytecodeMagic) && content.take_front(kLooked).contains('\0'))
    return cortiq::invalid(cortiq::formats::quote(file) +
                           " is neither MLIR text nor MLIR bytecode; cortiq-inspect tells what it is");
  return {};
}

/// What MLIR registers before it parses, without the parsing.
void describe(mlir::DialectRegistry& registry) {
  const llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("IR to read; - is standard input"),
                                         llvm::cl::value_desc("FILE"));
  const llvm::cl::opt<std::string> output("o", llvm::cl::desc("File to write"), llvm::cl::value_desc("FILE"));
  mlir::MlirOptMainConfig::registerCLOptions(registry);
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  cortiq::tools::describe_llvm_options(kProgram, kOverview);
}

cortiq::StatusOr<int> run(int argc, char** argv) {
  // LLVM's code generators register hundreds of options that nothing here reads.
  llvm::cl::ResetCommandLineParser();
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream& out) {
    out << "cortiq-opt " CORTIQ_VERSION " (dialects cmf, kernel and vec; MLIR " LLVM_VERSION_STRING ")\n";
  });
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, cortiq::cmf::CMFDialect, cortiq::kernel::KernelDialect,
                  cortiq::vec::VecDialect>();
  cortiq::compiler::registerCortiqPasses();
  mlir::registerTransformsPasses();
  if (cortiq::tools::asks_for_description(argc, argv)) {
    describe(registry);
    return 0;
  }
  const auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, kOverview, registry);
  CORTIQ_RETURN_IF_ERROR(check_input(input));
  if (mlir::failed(mlir::MlirOptMain(argc, argv, input, output, registry)))
    return cortiq::runtime::cli::kBadInput; // MLIR has said why
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  cortiq::tools::guard_llvm_output(kProgram);
  return cortiq::runtime::cli::run_tool(kProgram, "this IR; a machine with more can read it",
                                        [&] { return run(argc, argv); });
}
