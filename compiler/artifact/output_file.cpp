#include "compiler/artifact/output_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "formats/input_files.h"
#include "formats/quote.h"

namespace cortiq::compiler {
namespace {

Status systemError(const std::string& what, const std::string& path, int error) {
  return io_error(what + " " + formats::quote(path) + ": " + std::strerror(error));
}

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A name beside `path` that no file has; `fd` receives an open file when `create`.
std::string uniqueName(const std::string& path, int* fd) {
  std::string name = path + ".tmp-XXXXXX";
  *fd = mkostemp(name.data(), O_CLOEXEC);
  return name;
}

mode_t permissions() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

} // namespace

StatusOr<OutputFile> OutputFile::create(const std::string& path, uint64_t bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return io_error("cannot write " + formats::quote(path) + ": it exists and is not a regular file");
  CORTIQ_RETURN_IF_ERROR(formats::check_protected(path));
  OutputFile out;
  out.path_ = path;
  out.fd_ = open(folderOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (out.fd_ < 0) { // the file system has no files without a name
    out.temporary_ = uniqueName(path, &out.fd_);
    if (out.fd_ < 0) {
      out.temporary_.clear();
      return systemError("cannot create", path, errno);
    }
    if (fchmod(out.fd_, permissions()) != 0)
      return systemError("cannot set the permissions of", path, errno);
  }
  if (const int error = posix_fallocate(out.fd_, 0, static_cast<off_t>(bytes)); error != 0)
    return systemError("cannot reserve " + std::to_string(bytes) + " bytes for", path, error);
  return out;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), fd_(std::exchange(other.fd_, -1)),
      mapping_(std::exchange(other.mapping_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

OutputFile::~OutputFile() {
  if (mapping_)
    munmap(mapping_, mapped_);
  if (!temporary_.empty())
    unlink(temporary_.c_str());
  if (fd_ >= 0)
    close(fd_);
}

StatusOr<std::span<uint8_t>> OutputFile::map(uint64_t offset, uint64_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (address == MAP_FAILED)
    return systemError("cannot map", path_, errno);
  mapping_ = static_cast<uint8_t*>(address);
  mapped_ = bytes;
  return std::span<uint8_t>(mapping_, bytes);
}

Status OutputFile::writeAt(uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot write", path_, written < 0 ? errno : ENOSPC);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status OutputFile::flush() {
  if (fsync(fd_) != 0)
    return systemError("cannot flush", path_, errno);
  return {};
}

std::string OutputFile::readablePath() const {
  return temporary_.empty() ? "/proc/self/fd/" + std::to_string(fd_) : temporary_;
}

Status OutputFile::commit() {
  if (temporary_.empty()) {
    int placeholder = -1;
    std::string name = uniqueName(path_, &placeholder);
    if (placeholder < 0)
      return systemError("cannot create", path_, errno);
    close(placeholder);
    unlink(name.c_str());
    if (linkat(AT_FDCWD, readablePath().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return systemError("cannot name", path_, errno);
    temporary_ = std::move(name);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return systemError("cannot rename the finished file to", path_, errno);
  temporary_.clear();
  if (const int folder = open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    fsync(folder); // makes the name durable; the file itself already is
    close(folder);
  }
  return {};
}

} // namespace cortiq::compiler
