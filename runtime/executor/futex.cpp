#include "runtime/executor/futex.h"

#include <bit>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cortiq::runtime {

static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t), "the kernel sees the atomic as its word");
static_assert(std::endian::native == std::endian::little, "the low half comes first");

void futex_wait(std::atomic<uint64_t>& word, uint64_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected), nullptr, nullptr, 0);
}

void futex_wake_all(std::atomic<uint64_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace cortiq::runtime
