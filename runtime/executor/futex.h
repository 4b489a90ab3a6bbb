#pragma once

// Waiting in the kernel for a word to change (futex(2)).

#include <atomic>
#include <cstdint>

namespace cortiq::runtime {

/// Sleeps while the low half of `word` is that of `expected`; may return early.
void futex_wait(std::atomic<uint64_t>& word, uint64_t expected);
void futex_wake_all(std::atomic<uint64_t>& word);

/// Tells the core that this is a spin loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

} // namespace cortiq::runtime
