#include "formats/file_guard.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include "formats/part_files.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr int kBadInput = 2;

/// A registered mapping. Entries are never freed, only used again: the handler may walk them at any moment.
struct Entry {
  std::atomic<uintptr_t> begin{0}; ///< 0: not in use
  std::atomic<uintptr_t> end{0};
  std::string sentence; ///< written before `begin` is set
  Entry* next = nullptr;
};

std::atomic<Entry*> g_entries{nullptr};
std::mutex g_mutex; ///< held by whoever changes entries, never by the handler
const char* g_program = "";
struct sigaction g_previous;
std::atomic_flag g_ending = ATOMIC_FLAG_INIT;

void write_all(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t n = write(STDERR_FILENO, text, size);
    if (n <= 0)
      return;
    text += n;
    size -= static_cast<size_t>(n);
  }
}

/// Only async-signal-safe calls and lock-free atomics from here on.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Entry* entry = g_entries.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    const uintptr_t begin = entry->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= entry->end.load(std::memory_order_relaxed))
      continue;
    // Several threads may meet the hole at once; one of them speaks.
    while (g_ending.test_and_set())
      pause();
    write_all(g_program, std::strlen(g_program));
    write_all(": ", 2);
    write_all(entry->sentence.data(), entry->sentence.size());
    remove_watched_parts();
    _exit(kBadInput);
  }
  // Not ours: the access is repeated after the return, and meets the handler that was there before.
  sigaction(SIGBUS, &g_previous, nullptr);
}

} // namespace

void watch_mapping(const void* begin, size_t size, const std::string& path) {
  if (begin == nullptr || size == 0)
    return;
  const std::lock_guard lock(g_mutex);
  Entry* entry = g_entries.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->begin.load(std::memory_order_relaxed) != 0)
    entry = entry->next;
  const bool fresh = entry == nullptr;
  if (fresh)
    entry = new Entry;
  entry->sentence =
      quote(path) + " became shorter or unreadable while it was in use; put it back whole and start again\n";
  entry->end.store(reinterpret_cast<uintptr_t>(begin) + size, std::memory_order_relaxed);
  entry->begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
  if (fresh) {
    entry->next = g_entries.load(std::memory_order_relaxed);
    g_entries.store(entry, std::memory_order_release);
  }
}

void unwatch_mapping(const void* begin) {
  const std::lock_guard lock(g_mutex);
  for (Entry* entry = g_entries.load(std::memory_order_relaxed); entry != nullptr; entry = entry->next)
    if (begin != nullptr && entry->begin.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(begin))
      return entry->begin.store(0, std::memory_order_release);
}

void install_file_guard(const char* program) {
  const std::lock_guard lock(g_mutex);
  g_program = program;
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  struct sigaction before{};
  if (sigaction(SIGBUS, &action, &before) == 0 && before.sa_sigaction != on_bus_error)
    g_previous = before;
}

} // namespace cortiq::formats
