#pragma once

#include <string>

namespace cortiq::convert {

/// A bar on the standard error while it is a terminal, wiped at the end.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` within 0 and 1.
  void update(const char* what, double done);

private:
  bool terminal_;
  std::string shown_;
};

} // namespace cortiq::convert
