// cortiq-compile: a model to an artifact. Everything is in the libraries and the files beside this one.

#include <cstdio>

#include "tools/cortiq-compile/compile.h"
#include "tools/cortiq-compile/options.h"

int main(int argc, char** argv) {
  using namespace cortiq;
  Status status;
  if (StatusOr<std::optional<tools::CompileOptions>> options = tools::parse_options(argc, argv); !options.ok())
    status = options.status();
  else if (*options)
    status = (*options)->gemv.empty() ? tools::compile_model(**options) : tools::compile_kernel(**options);
  if (!status.ok())
    std::fprintf(stderr, "cortiq-compile: %s\n", status.message().c_str());
  return exit_code(status);
}
