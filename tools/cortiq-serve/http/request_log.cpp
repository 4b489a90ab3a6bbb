#include "tools/cortiq-serve/http/request_log.h"

#include <algorithm>
#include <climits>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace cortiq::serve {

void RequestLog::write(std::string line) {
  const std::lock_guard lock(mutex_); // who asked whether there is room is who takes it
  if (left_out_ != 0 && take("cortiq-serve: note: " + std::to_string(left_out_) +
                             " lines of this log were left out, because nobody read it"))
    left_out_ = 0;
  if (left_out_ != 0 || !take(std::move(line)))
    ++left_out_;
}

bool RequestLog::take(std::string line) {
  line.resize(std::min<size_t>(line.size(), PIPE_BUF - 1));
  line += '\n';
  pollfd file = {file_, POLLOUT, 0};
  if (poll(&file, 1, 0) != 1)
    return false;
  // What fails from here on, a full disk or a reader that is gone, is no matter of waiting: the server lives without.
  [[maybe_unused]] const ssize_t written = ::write(file_, line.data(), line.size());
  return true;
}

} // namespace cortiq::serve
