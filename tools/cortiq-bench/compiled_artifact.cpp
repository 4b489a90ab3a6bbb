#include "tools/cortiq-bench/compiled_artifact.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>

#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"

namespace cortiq::bench {

StatusOr<CompiledArtifact> CompiledArtifact::compile(std::vector<std::string> arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string compiler, runtime::cli::find_compiler());
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/cortiq-bench-XXXXXX.cqa";
  const int fd = mkstemps(path.data(), 4);
  if (fd < 0)
    return io_error("cannot create " + formats::quote(path) + ": " + std::strerror(errno));
  close(fd);
  CompiledArtifact out;
  out.path_ = std::move(path);
  arguments.insert(arguments.end(), {"-o", out.path_});
  CORTIQ_RETURN_IF_ERROR(runtime::cli::run_compiler(compiler, arguments));
  return out;
}

CompiledArtifact::CompiledArtifact(CompiledArtifact&& other) noexcept : path_(std::exchange(other.path_, {})) {}

CompiledArtifact::~CompiledArtifact() {
  if (!path_.empty())
    unlink(path_.c_str());
}

} // namespace cortiq::bench
