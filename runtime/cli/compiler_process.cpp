#include "runtime/cli/compiler_process.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/quote.h"

extern char** environ;

namespace cortiq::runtime::cli {
namespace {

constexpr char kName[] = "cortiq-compile";

std::vector<char*> argument_vector(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> out = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    out.push_back(const_cast<char*>(argument.c_str()));
  out.push_back(nullptr);
  return out;
}

} // namespace

StatusOr<std::string> find_compiler() {
  char self[PATH_MAX];
  if (const ssize_t length = readlink("/proc/self/exe", self, sizeof(self)); length > 0 && length < PATH_MAX) {
    std::string path(self, static_cast<size_t>(length));
    path.resize(path.rfind('/') + 1);
    path += kName;
    if (access(path.c_str(), X_OK) == 0)
      return path;
  }
  const char* search = std::getenv("PATH");
  for (std::string rest = search ? search : ""; !rest.empty();) {
    const size_t colon = rest.find(':');
    std::string path = rest.substr(0, colon);
    path += (path.empty() ? "./" : "/") + std::string(kName);
    if (access(path.c_str(), X_OK) == 0)
      return path;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return unsupported("a model file needs cortiq-compile, which is neither beside this program nor on PATH; give it a "
                     "compiled artifact (.cqa) instead");
}

Status run_compiler(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv = argument_vector(program, arguments);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ); error != 0)
    return io_error("cannot start " + formats::quote(program) + ": " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return io_error(std::string("cannot wait for cortiq-compile: ") + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  if (WIFSIGNALED(status))
    return internal_error("cortiq-compile was ended by signal " + std::to_string(WTERMSIG(status)));
  return WEXITSTATUS(status) == 1 ? internal_error("") : invalid("");
}

Status become(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv = argument_vector(program, arguments);
  execv(program.c_str(), argv.data());
  return io_error("cannot start " + formats::quote(program) + ": " + std::strerror(errno));
}

} // namespace cortiq::runtime::cli
