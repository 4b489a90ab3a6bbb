#include "test/fuzz/memory_file.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace cortiq::fuzz {

MemoryFile::MemoryFile(std::span<const uint8_t> bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
  for (size_t done = 0; fd_ >= 0 && done < bytes.size();) {
    const ssize_t n = write(fd_, bytes.data() + done, bytes.size() - done);
    if (n <= 0)
      break;
    done += static_cast<size_t>(n);
  }
  if (fd_ < 0 || lseek(fd_, 0, SEEK_CUR) != static_cast<off_t>(bytes.size())) {
    std::perror("memory for the input");
    _exit(0);
  }
  path_ = "/proc/self/fd/" + std::to_string(fd_);
}

MemoryFile::~MemoryFile() {
  close(fd_);
}

void require(bool holds, const char* what) {
  if (holds)
    return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void consume(std::span<const uint8_t> bytes) {
  uint8_t sum = 0;
  for (const uint8_t byte : bytes)
    sum = static_cast<uint8_t>(sum + byte);
  [[maybe_unused]] static volatile uint8_t sink;
  sink = sum;
}

} // namespace cortiq::fuzz
