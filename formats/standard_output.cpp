#include "formats/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace cortiq::formats {

Status flush_standard_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return {};
  // The reason is known only where this write was the one that failed.
  return io_error("standard output cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
}

int exit_code_after_output(const char* program, int code) {
  const Status status = flush_standard_output();
  if (status.ok() || code != 0)
    return code;
  std::fprintf(stderr, "%s: %s\n", program, status.message().c_str());
  return exit_code(status);
}

} // namespace cortiq::formats
