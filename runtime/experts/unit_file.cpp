#include "runtime/experts/unit_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "formats/quote.h"

namespace cortiq::runtime {

StatusOr<UnitFile> UnitFile::open(const std::string& path, std::span<const uint8_t> first_page, WeightHashes hashes) {
  UnitFile file;
  file.path_ = path;
  std::unique_ptr<void, decltype(&std::free)> page(std::aligned_alloc(kReadAlignment, kReadAlignment), &std::free);
  if (!page)
    return io_error("there is no memory for reading " + formats::quote(path));
  // Some file systems refuse the flag when opening, some only when reading.
  for (const int direct : {O_DIRECT, 0}) {
    if (file.fd_ >= 0)
      close(file.fd_);
    file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | direct);
    file.direct_ = direct != 0;
    if (file.fd_ >= 0 && pread(file.fd_, page.get(), kReadAlignment, 0) == static_cast<ssize_t>(kReadAlignment))
      break;
    if (direct == 0)
      return io_error("cannot read " + formats::quote(path) + ": " + std::strerror(errno));
  }
  struct stat info;
  if (fstat(file.fd_, &info) != 0)
    return io_error("cannot read " + formats::quote(path) + ": " + std::strerror(errno));
  if (first_page.size() < kReadAlignment || std::memcmp(page.get(), first_page.data(), kReadAlignment) != 0)
    return io_error(formats::quote(path) + " was replaced while it was being loaded; start again");
  if (!hashes.always) // else it stays one that no file bears
    file.stamp_ = {static_cast<uint64_t>(info.st_size), info.st_mtim};
  file.leaves_ = std::make_unique<WeightLeaves>(std::move(hashes));
  return file;
}

UnitFile::UnitFile(UnitFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), direct_(other.direct_), stamp_(other.stamp_),
      leaves_(std::move(other.leaves_)), path_(std::move(other.path_)) {}

UnitFile::~UnitFile() {
  if (fd_ >= 0)
    close(fd_);
}

Status UnitFile::verdict(const UnitRead& read, uint64_t got, int error) const {
  const std::string name = formats::quote(path_);
  if (error != 0)
    return io_error("cannot read experts from " + name + " at byte " + std::to_string(read.offset + got) + ": " +
                    std::strerror(error));
  // A new time may be touch(1)'s, or a copy's onto itself: what counts is the bytes.
  struct stat info{};
  const bool known = fstat(fd_, &info) == 0;
  const FileStamp now{static_cast<uint64_t>(info.st_size), info.st_mtim};
  const bool good = known && (now == stamp_ ? got >= read.needed : leaves_->hold(fd_, read, now));
  if (!good)
    return io_error(name + " was changed while it was in use; restore or compile it again, then start again");
  return {};
}

void UnitFile::forget(const UnitRead& read) const {
  if (!direct_)
    posix_fadvise(fd_, static_cast<off_t>(read.offset), static_cast<off_t>(read.bytes), POSIX_FADV_DONTNEED);
}

} // namespace cortiq::runtime
