#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

void Job::push(Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
  }
  changed_.notify_all();
}

void Job::finish(Finish finish) {
  {
    const std::lock_guard lock(mutex_);
    finish_ = std::move(finish);
  }
  changed_.notify_all();
}

bool Job::wait(std::chrono::milliseconds patience, std::vector<Piece>& pieces) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return !pieces_.empty() || finish_; }))
    return false;
  pieces = std::move(pieces_);
  pieces_.clear();
  return true;
}

std::optional<Finish> Job::finished() const {
  const std::lock_guard lock(mutex_);
  // What was pushed before the end is taken first.
  return pieces_.empty() ? finish_ : std::nullopt;
}

} // namespace cortiq::serve
