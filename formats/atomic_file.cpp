#include "formats/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "formats/input_files.h"
#include "formats/part_files.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

Status write_error(const std::string& path) {
  return io_error("cannot write " + quote(path) + ": " + std::strerror(errno));
}

} // namespace

StatusOr<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return invalid(quote(path) + " is not a file name");
  struct stat info{};
  // Renaming would replace a device or a directory entry by a file: only absent or regular destinations are meant.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return io_error("cannot write " + quote(path) + ": it exists and is not a regular file");
  CORTIQ_RETURN_IF_ERROR(check_protected(path));
  CORTIQ_ASSIGN_OR_RETURN(Part part, create_part(path));
  AtomicFile out;
  out.path_ = path;
  out.temporary_ = std::move(part.path);
  out.fd_ = part.fd;
  return out;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept {
  *this = std::move(other);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    temporary_ = std::move(other.temporary_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = other.size_;
  }
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() {
  if (fd_ < 0)
    return;
  close(fd_);
  fd_ = -1;
  unlink(temporary_.c_str());
  unwatch_part(temporary_);
}

Status AtomicFile::write(std::span<const uint8_t> bytes) {
  CORTIQ_RETURN_IF_ERROR(write_at(size_, bytes));
  size_ += bytes.size();
  return {};
}

Status AtomicFile::write(std::string_view text) {
  return write(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Status AtomicFile::pad_to(uint64_t alignment) {
  const std::vector<uint8_t> zeros((alignment - size_ % alignment) % alignment);
  return write(zeros);
}

Status AtomicFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return write_error(path_);
    done += static_cast<size_t>(n);
  }
  return {};
}

Status AtomicFile::extend_to(uint64_t size) {
  if (size <= size_)
    return {};
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0)
    return write_error(path_);
  size_ = size;
  return {};
}

Status AtomicFile::commit() {
  if (fsync(fd_) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0)
    return write_error(path_);
  unwatch_part(temporary_);
  close(std::exchange(fd_, -1));
  return {};
}

Status write_file(const std::string& path, std::span<const uint8_t> bytes) {
  CORTIQ_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

Status check_not_input(const std::string& input, const std::string& output) {
  std::error_code missing; // files that do not exist are no input
  if (!output.empty() && std::filesystem::equivalent(input, output, missing))
    return invalid(quote(output) + " is the input itself; give the result another name");
  return {};
}

} // namespace cortiq::formats
