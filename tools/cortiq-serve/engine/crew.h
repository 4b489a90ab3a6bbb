#pragma once

// Threads that share out small pieces of work.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cortiq::serve {

/// For one caller at a time.
class Crew {
public:
  /// With `threads` threads, the caller's included; fewer when the system refuses some.
  explicit Crew(unsigned threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Calls work(0) to work(count - 1), each once, on any thread, and returns when all have returned. `work` may not
  /// throw.
  void run(size_t count, const std::function<void(size_t)>& work);

private:
  void help();
  void take_pieces();

  std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(size_t)>* work_ = nullptr; ///< null: there is none
  size_t count_ = 0;
  std::atomic<size_t> next_{0};
  size_t helping_ = 0; ///< helpers that are at it
  size_t wanted_ = 0;  ///< helpers that may still join in
  bool ending_ = false;
  std::vector<std::thread> helpers_;
};

} // namespace cortiq::serve
