#pragma once

// What the jobs of one answer bring, whichever has something next.

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

/// Cancels what is not finished when it goes away.
class Pieces {
public:
  struct News {
    std::vector<std::pair<size_t, Piece>> pieces; ///< with the job's number, in the order of each
    std::vector<std::pair<size_t, Finish>> finishes;
  };

  explicit Pieces(std::vector<std::shared_ptr<Job>> jobs) : jobs_(std::move(jobs)), finishes_(jobs_.size()) {}
  ~Pieces() { cancel(); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  size_t size() const { return jobs_.size(); }
  /// Waits for up to `patience`. True: there is something new.
  bool wait(std::chrono::milliseconds patience, News& news);
  /// All jobs are finished, and all of it was handed out.
  bool ended() const;
  /// Of each; once ended().
  std::vector<Finish> finishes() const;
  void cancel();

private:
  bool take(size_t number, std::chrono::milliseconds patience, News& news);

  std::vector<std::shared_ptr<Job>> jobs_;
  std::vector<std::optional<Finish>> finishes_;
};

} // namespace cortiq::serve
