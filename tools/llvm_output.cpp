#include "tools/llvm_output.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "formats/terminal.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

namespace cortiq::tools {
namespace {

const char* program_name = "";

void check_output() {
  llvm::raw_fd_ostream& out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return;
  std::fprintf(stderr, "%s: standard output cannot be written: %s\n", program_name, out.error().message().c_str());
  out.clear_error();
  _exit(2);
}

} // namespace

void guard_llvm_output(const char* program) {
  program_name = program;
  llvm::outs(); // made before the handler is registered, it is alive when that runs
  std::atexit(check_output);
  // LLVM itself asks the terminal alone.
  llvm::WithColor::setAutoDetectFunction(
      [](const llvm::raw_ostream& out) { return out.has_colors() && formats::shows_colours(STDERR_FILENO); });
}

} // namespace cortiq::tools
