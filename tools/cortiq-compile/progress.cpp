#include "tools/cortiq-compile/progress.h"

#include <cstdio>
#include <unistd.h>

namespace cortiq::tools {

Progress::Progress(std::string what)
    : what_(std::move(what)), start_(std::chrono::steady_clock::now()), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (percent_ >= 0)
    std::fputs("\r\033[K", stderr);
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0 || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1))
    return;
  const int percent = static_cast<int>(static_cast<double>(done) * 100.0 / static_cast<double>(total));
  if (percent == percent_)
    return;
  percent_ = percent;
  std::fprintf(stderr, "\r%s %3d %%\033[K", what_.c_str(), percent);
  std::fflush(stderr);
}

} // namespace cortiq::tools
