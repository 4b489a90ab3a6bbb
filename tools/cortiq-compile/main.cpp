// cortiq-compile: a model to an artifact. Everything is in the libraries and the files beside this one.

#include <cstdio>
#include <string_view>

#include "formats/file_guard.h"
#include "formats/part_files.h"
#include "formats/standard_output.h"
#include "tools/cortiq-compile/compile.h"
#include "tools/cortiq-compile/interpret.h"
#include "tools/cortiq-compile/options.h"
#include "tools/llvm_output.h"

int main(int argc, char** argv) {
  using namespace cortiq;
  formats::install_file_guard("cortiq-compile");
  formats::prepare_to_write();
  tools::guard_llvm_output("cortiq-compile");
  Status status;
  int code = 0;
  if (argc > 1 && std::string_view(argv[1]) == "--interpret") {
    if (StatusOr<int> outcome = tools::interpret(argc - 1, argv + 1); outcome.ok())
      code = *outcome;
    else
      status = outcome.status();
  } else if (StatusOr<std::optional<tools::CompileOptions>> options = tools::parse_options(argc, argv); !options.ok()) {
    status = options.status();
  } else if (*options) {
    status = (*options)->gemv.empty() ? tools::compile_model(**options) : tools::compile_kernel(**options);
  }
  if (!status.ok()) {
    if (!status.message().empty()) // LLVM's parser has said it already
      std::fprintf(stderr, "cortiq-compile: %s\n", status.message().c_str());
    code = exit_code(status);
  }
  return formats::exit_code_after_output("cortiq-compile", code);
}
