#pragma once

// The log: a line a request on stderr.

#include <cstdint>
#include <mutex>
#include <string>

namespace cortiq::serve {

/// Never waits. What stderr cannot take at once, a pipe that nobody reads, is left out, and counted: the next line that
/// is taken says how many there were. May be used by several threads.
class RequestLog {
public:
  explicit RequestLog(int file) : file_(file) {}
  /// `line` has no line feed; beyond what a pipe takes in one piece (4,096 bytes) it is cut.
  void write(std::string line);

private:
  bool take(std::string line);

  const int file_;
  std::mutex mutex_;
  uint64_t left_out_ = 0;
};

} // namespace cortiq::serve
