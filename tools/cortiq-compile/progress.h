#pragma once

// A line on the terminal that tells how far work is.

#include <chrono>
#include <cstdint>
#include <string>

namespace cortiq::tools {

/// Shows itself on the standard error when that is a terminal and a second has passed, and wipes itself at the end.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done, uint64_t total);

private:
  std::string what_;
  std::chrono::steady_clock::time_point start_;
  bool terminal_;
  int percent_ = -1;
};

} // namespace cortiq::tools
