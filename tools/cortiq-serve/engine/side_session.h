#pragma once

// What is asked of a given text: its vector, or how likely it is. On a session of its own, beside the batch that
// answers.

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/session/session.h"
#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

/// Thread-safe; texts are taken one after the other.
class SideSession {
public:
  using Clock = std::chrono::steady_clock;

  /// The session is made for the first text. `waiting`: callers that may wait for others.
  SideSession(std::shared_ptr<const runtime::Model> model, runtime::SessionOptions options, uint64_t waiting)
      : model_(std::move(model)), options_(options), most_waiting_(waiting) {}

  /// A place among those who wait, for one caller with all its texts.
  class Turn {
  public:
    explicit Turn(SideSession& side_session) : side_session_(side_session), entered_(side_session.enter()) {}
    ~Turn() {
      if (entered_)
        side_session_.leave();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// False: there is none left.
    bool entered() const { return entered_; }

  private:
    SideSession& side_session_;
    const bool entered_;
  };

  /// The vector of one text, of length 1. Fails when `deadline` comes before its turn.
  StatusOr<std::vector<float>> embed(std::span<const uint32_t> tokens, runtime::Pooling pooling,
                                     const formats::OverlaySelection& overlay, Clock::time_point deadline);

  /// How likely the model thinks each of `tokens` behind those before it, with `count` of the likeliest; of the first
  /// one it has no opinion, and its record says NaN. Fails as embed() does.
  StatusOr<std::vector<TokenRecord>> score(std::span<const uint32_t> tokens, uint32_t count,
                                           const formats::OverlaySelection& overlay, Clock::time_point deadline);

private:
  /// The session under `overlay`, which belongs to the holder of `lock` from then on.
  StatusOr<runtime::Session*> take(std::unique_lock<std::timed_mutex>& lock, const formats::OverlaySelection& overlay,
                                   Clock::time_point deadline);
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
