#include "runtime/session/reserved_memory.h"

#include <sys/mman.h>

namespace cortiq::runtime {

ReservedMemory::ReservedMemory(uint64_t bytes, const Placement& placement) {
  if (bytes == 0)
    return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return;
  base_ = static_cast<uint8_t*>(address);
  bytes_ = bytes;
  place(base_, bytes_, placement);
}

ReservedMemory::~ReservedMemory() {
  if (base_)
    munmap(base_, bytes_);
}

} // namespace cortiq::runtime
