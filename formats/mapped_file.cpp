#include "formats/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/file_guard.h"
#include "formats/input_files.h"
#include "formats/quote.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORTIQ_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CORTIQ_ADDRESS_SANITIZER
#endif
#ifdef CORTIQ_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace cortiq::formats {
namespace {

/// The last page of a mapping goes on behind the file's end. Under the address sanitizer reading there is a finding.
void forbid_tail([[maybe_unused]] const uint8_t* map, [[maybe_unused]] size_t size) {
#ifdef CORTIQ_ADDRESS_SANITIZER
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ASAN_POISON_MEMORY_REGION(map + size, (page - size % page) % page);
#endif
}

void permit_tail([[maybe_unused]] const uint8_t* map, [[maybe_unused]] size_t size) {
#ifdef CORTIQ_ADDRESS_SANITIZER
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ASAN_UNPOISON_MEMORY_REGION(map + size, (page - size % page) % page);
#endif
}

/// Closes a descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status read_all(int fd, uint8_t* into, size_t size, const std::string& path) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = read(fd, into + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error(quote(path) + " cannot be read: " + std::strerror(errno));
    if (n == 0)
      return io_error(quote(path) + " became shorter while it was read");
    done += static_cast<size_t>(n);
  }
  return {};
}

} // namespace

void MappedFile::Release::operator()(const uint8_t* bytes) const {
  if (mapped == 0) {
    delete[] bytes;
    return;
  }
  unwatch_mapping(bytes);
  permit_tail(bytes, mapped);
  munmap(const_cast<uint8_t*>(bytes), mapped);
}

StatusOr<MappedFile> MappedFile::open(const std::string& path) {
  // A path that ends in the middle for the operating system would open another file than the one named.
  if (path.empty() || path.find('\0') != std::string::npos)
    return invalid(quote(path) + " is not a file name");
  // O_NONBLOCK keeps a pipe without a writer from blocking the open; it means nothing for regular files.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT)
      return io_error(quote(path) + " does not exist");
    return io_error(quote(path) + " cannot be opened: " + std::strerror(errno));
  }
  struct stat info{};
  if (fstat(file.fd, &info) != 0)
    return io_error(quote(path) + " cannot be examined: " + std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    return io_error(quote(path) + " is a directory; name a file in it");
  if (!S_ISREG(info.st_mode))
    return io_error(quote(path) + " is not a regular file");
  remember_input(file.fd);

  MappedFile out;
  out.path_ = path;
  out.size_ = static_cast<size_t>(info.st_size);
  if (out.size_ == 0)
    return out;
  if (void* map = mmap(nullptr, out.size_, PROT_READ, MAP_PRIVATE, file.fd, 0); map != MAP_FAILED) {
    out.bytes_ = {static_cast<const uint8_t*>(map), Release(out.size_)};
    watch_mapping(map, out.size_, path);
    forbid_tail(out.bytes_.get(), out.size_);
    return out;
  }
  auto* memory = new (std::nothrow) uint8_t[out.size_];
  if (memory == nullptr)
    return io_error(quote(path) + " can be neither mapped nor read: not enough memory for its " +
                    std::to_string(out.size_) + " bytes");
  out.bytes_ = {memory, Release()};
  CORTIQ_RETURN_IF_ERROR(read_all(file.fd, memory, out.size_, path));
  return out;
}

} // namespace cortiq::formats
