#pragma once

// The recurrent states of one session and the way back: such a state cannot forget its last tokens, so the session
// keeps the tokens, and copies of the states at a few positions to start again from. Caches that are rings go back as
// far as nothing was written over; beyond, they are filled again from the beginning.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "formats/status.h"
#include "runtime/session/reserved_memory.h"

namespace cortiq::runtime {

/// Without states and rings every call is a no-op.
class RecurrentMemory {
public:
  /// Copies that are kept: enough for the last turns of a conversation and a step of speculation. The oldest goes
  /// first.
  static constexpr size_t kCopies = 4;

  /// `sizes`: numbers of each state. `ring_slack`: with caches that are rings, how far behind the furthest position
  /// that was written the next token may stand. With `guesses` there is room for kept_states().
  Status reserve(std::span<const uint64_t> sizes, std::optional<uint64_t> ring_slack, bool guesses = false);

  std::span<float* const> states() const { return states_; }
  /// Where a step of two tokens, the second a guess, leaves the states behind the first.
  std::span<float* const> kept_states() const { return kept_states_; }
  uint64_t reserved_bytes() const;

  /// Whether states and rings are those behind the first `position` tokens.
  bool at(uint64_t position) const { return (states_.empty() || position_ == position) && position >= rings_reach(); }
  /// Brings the states to the nearest position at or before `position` that is known, and returns it. The tokens from
  /// there on have to run again.
  uint64_t restore(uint64_t position);
  /// The tokens that were read.
  std::span<const uint32_t> tokens() const { return tokens_; }
  /// The states were brought to `position` by running tokens() again.
  void caught_up(uint64_t position) { position_ = position; }

  /// `count` tokens are about to run behind the first `position`, where the states are. What was read beyond is
  /// forgotten; a copy is kept when more than one token could have to be taken back.
  void begin(uint64_t position, uint64_t count);
  /// Caches are about to be written up to position `end`.
  void write(uint64_t end) { furthest_ = std::max(furthest_, end); }
  /// They have run.
  void commit(std::span<const uint32_t> tokens);
  /// The same for two tokens of which the second may be taken back at once, without a copy: kept_states() are then the
  /// states behind the first.
  void begin_guess(uint64_t position) { begin(position, 1); }
  void commit_guess(std::span<const uint32_t> tokens);
  /// How far the caches were written, as far as that matters: the position that they are at where none is a ring.
  uint64_t furthest(uint64_t position) const { return ring_slack_ ? furthest_ : position; }
  /// States and caches, written up to `furthest`, were filled with what they are behind `tokens`.
  void adopt(std::span<const uint32_t> tokens, uint64_t furthest);
  /// They have not, or not all of them: states and rings are of no position.
  void lose() {
    position_.reset();
    furthest_ = std::numeric_limits<uint64_t>::max();
  }

private:
  struct Copy {
    uint64_t position = 0; ///< 0 = empty; the beginning needs no copy
    ReservedMemory memory;
  };
  void keep_copy();
  bool keeps_tokens() const { return !states_.empty() || ring_slack_; }
  /// The first position that the rings can go on from.
  uint64_t rings_reach() const { return ring_slack_ && furthest_ > *ring_slack_ ? furthest_ - *ring_slack_ : 0; }

  ReservedMemory memory_, kept_;
  std::vector<float*> states_, kept_states_;
  uint64_t kept_position_ = 0; ///< of kept_; 0 = none
  std::vector<uint32_t> tokens_;
  std::optional<uint64_t> position_ = 0;
  std::optional<uint64_t> ring_slack_;
  uint64_t furthest_ = 0; ///< position up to which the rings were written
  Copy copies_[kCopies];
};

} // namespace cortiq::runtime
