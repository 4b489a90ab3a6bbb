#include "tools/cortiq-convert/progress_bar.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace cortiq::convert {

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (!shown_.empty())
    std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(const char* what, double done) {
  constexpr size_t kWidth = 40;
  if (!terminal_)
    return;
  const double part = std::clamp(done, 0.0, 1.0);
  const auto full = static_cast<size_t>(part * kWidth);
  const std::string line = std::string(what) + " [" + std::string(full, '#') + std::string(kWidth - full, ' ') + "] " +
                           std::to_string(static_cast<int>(part * 100)) + " %";
  if (line == shown_)
    return;
  shown_ = line;
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

} // namespace cortiq::convert
