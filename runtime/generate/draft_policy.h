#pragma once

// Whether guessing tokens ahead pays. A guess costs a run of the block that makes it and a second position in the step
// that checks it; when it is right, the next step is saved.

#include <cstdint>

namespace cortiq::runtime {

/// When to guess tokens ahead. What is generated does not depend on it.
enum class Speculation {
  kOff,
  kOn,
  kAuto, ///< while it pays
};

/// Decides for one generation. In kAuto it measures a few tokens without guesses first, then compares after every
/// kTrial guesses; where they do not pay it pauses, each time twice as long.
class DraftPolicy {
public:
  static constexpr uint64_t kWarmUp = 2; ///< tokens without guesses at the start
  static constexpr uint64_t kTrial = 16;
  static constexpr uint64_t kFirstPause = 64, kLongestPause = 4096;
  /// Shares of right guesses below and above which the clock, which other programs disturb, is not asked.
  static constexpr double kHopeless = 0.25, kCertain = 0.9;

  explicit DraftPolicy(Speculation mode) : mode_(mode), left_(mode == Speculation::kAuto ? kWarmUp : 0) {}

  /// Whether a guess should be made for the next step.
  bool wants() const { return mode_ != Speculation::kOff && left_ == 0; }
  /// Whether what guesses read should be kept of the next step.
  bool keeps() const { return mode_ == Speculation::kOn || (mode_ == Speculation::kAuto && left_ <= kWarmUp); }

  /// A step without a guess took this long.
  void plain(double seconds);
  /// A step with one, the making of it included; was it right?
  void guessed(double seconds, bool accepted);

private:
  Speculation mode_;
  uint64_t left_; ///< steps without guesses that are still to come
  uint64_t pause_ = kFirstPause;
  double plain_seconds_ = 0; ///< of a step: the quickest lately
  uint64_t guesses_ = 0, accepted_ = 0;
  double seconds_ = 0; ///< of the trial's steps
};

} // namespace cortiq::runtime
