// cortiq-compile: a model to an artifact. Everything is in the libraries and the files beside this one. Exit codes: 0
// done, 2 bad input or bad command line, 1 a bug of ours.

#include <optional>
#include <string_view>

#include "formats/part_files.h"
#include "runtime/cli/tool_main.h"
#include "tools/cortiq-compile/compile.h"
#include "tools/cortiq-compile/interpret.h"
#include "tools/cortiq-compile/options.h"
#include "tools/llvm_output.h"

namespace {

constexpr char kProgram[] = "cortiq-compile";

cortiq::StatusOr<int> run(int argc, char** argv) {
  using namespace cortiq::tools;
  if (argc > 1 && std::string_view(argv[1]) == "--interpret")
    return interpret(argc - 1, argv + 1);
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<CompileOptions> options, parse_options(argc, argv));
  if (options)
    CORTIQ_RETURN_IF_ERROR(options->gemv.empty() ? compile_model(*options) : compile_kernel(*options));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  cortiq::tools::guard_llvm_output(kProgram);
  return cortiq::runtime::cli::run_tool(kProgram, "this model; a smaller -j takes less",
                                        [&] { return run(argc, argv); });
}
