#pragma once

// Who is next when several clients wait: the clients take turns, each one's requests in the order they came.

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

/// Not thread-safe.
class FairQueue {
public:
  void push(std::shared_ptr<Job> job);
  /// The next job; null when none waits.
  std::shared_ptr<Job> pop();
  size_t size() const { return size_; }
  /// Takes out the jobs that were cancelled, or whose time is up.
  std::deque<std::shared_ptr<Job>> take_cancelled();

private:
  struct Line {
    std::string client;
    std::deque<std::shared_ptr<Job>> jobs;
  };
  std::list<Line> lines_; ///< those with jobs; the first one's turn is next
  size_t size_ = 0;
};

} // namespace cortiq::serve
