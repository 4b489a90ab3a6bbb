#pragma once

// Vectors of texts, on a session of their own beside those that generate.

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/session/session.h"

namespace cortiq::serve {

/// Thread-safe; texts are taken one after the other.
class Embedder {
public:
  using Clock = std::chrono::steady_clock;

  /// The session is made for the first text. `waiting`: callers that may wait for others.
  Embedder(std::shared_ptr<const runtime::Model> model, runtime::SessionOptions options, uint64_t waiting)
      : model_(std::move(model)), options_(options), most_waiting_(waiting) {}

  /// A place among those who wait, for one caller with all its texts.
  class Turn {
  public:
    explicit Turn(Embedder& embedder) : embedder_(embedder), entered_(embedder.enter()) {}
    ~Turn() {
      if (entered_)
        embedder_.leave();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// False: there is none left.
    bool entered() const { return entered_; }

  private:
    Embedder& embedder_;
    const bool entered_;
  };

  /// The vector of one text, of length 1. Fails when `deadline` comes before its turn.
  StatusOr<std::vector<float>> embed(std::span<const uint32_t> tokens, runtime::Pooling pooling,
                                     const formats::OverlaySelection& overlay, Clock::time_point deadline);

private:
  bool enter();
  void leave();

  const std::shared_ptr<const runtime::Model> model_;
  const runtime::SessionOptions options_;
  const uint64_t most_waiting_;
  std::mutex count_mutex_;
  uint64_t inside_ = 0;
  std::timed_mutex session_mutex_;
  std::unique_ptr<runtime::Session> session_;
};

} // namespace cortiq::serve
