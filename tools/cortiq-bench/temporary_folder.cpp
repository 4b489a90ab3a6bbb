#include "tools/cortiq-bench/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "formats/quote.h"

namespace cortiq::bench {

StatusOr<TemporaryFolder> TemporaryFolder::create() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent && *parent ? parent : "/tmp") + "/cortiq-bench-XXXXXX";
  if (!mkdtemp(path.data()))
    return io_error("cannot create " + formats::quote(path) + ": " + std::strerror(errno));
  TemporaryFolder out;
  out.path_ = std::move(path);
  return out;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored; // what is left of it is in a folder for such things
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
}

} // namespace cortiq::bench
