#include "runtime/session/reserved_memory.h"

#include <sys/mman.h>

namespace cortiq::runtime {
namespace {

constexpr uint64_t kLargePage = uint64_t{2} << 20;

} // namespace

ReservedMemory::ReservedMemory(uint64_t bytes, const Placement& placement) {
  if (bytes == 0)
    return;
  const uint64_t slack = placement.large_pages ? kLargePage : 0;
  if (bytes > UINT64_MAX - slack)
    return;
  void* address =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return;
  mapped_ = static_cast<uint8_t*>(address);
  mapped_bytes_ = bytes + slack;
  base_ = slack == 0 ? mapped_ : mapped_ + (kLargePage - reinterpret_cast<uintptr_t>(mapped_) % kLargePage);
  bytes_ = bytes;
  place(base_, bytes_, placement);
}

ReservedMemory::~ReservedMemory() {
  if (mapped_)
    munmap(mapped_, mapped_bytes_);
}

} // namespace cortiq::runtime
