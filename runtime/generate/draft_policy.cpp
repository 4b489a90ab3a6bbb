#include "runtime/generate/draft_policy.h"

#include <algorithm>

namespace cortiq::runtime {

void DraftPolicy::plain(double seconds) {
  // The quickest of the latest: a step that was disturbed says nothing, a longer context makes all of them slower.
  constexpr double kForget = 1.01;
  plain_seconds_ = plain_seconds_ == 0 ? seconds : std::min(seconds, plain_seconds_ * kForget);
  if (left_ != 0)
    --left_;
}

void DraftPolicy::guessed(double seconds, bool accepted) {
  ++guesses_;
  accepted_ += accepted ? 1 : 0;
  seconds_ += seconds;
  if (mode_ != Speculation::kAuto || guesses_ < kTrial)
    return;
  const double share = static_cast<double>(accepted_) / static_cast<double>(guesses_);
  const double saved = plain_seconds_ * static_cast<double>(guesses_ + accepted_) - seconds_;
  if (share >= kCertain || (share >= kHopeless && saved >= 0)) {
    pause_ = kFirstPause;
  } else {
    left_ = pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  guesses_ = accepted_ = 0;
  seconds_ = 0;
}

} // namespace cortiq::runtime
