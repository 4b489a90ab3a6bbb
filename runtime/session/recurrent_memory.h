#pragma once

// The recurrent states of one session and the way back: such a state cannot forget its last tokens, so the session
// keeps the tokens, and copies of the states at a few positions to start again from.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/status.h"
#include "runtime/session/reserved_memory.h"

namespace cortiq::runtime {

/// Without states every call is a no-op.
class RecurrentMemory {
public:
  /// Copies that are kept: enough for the last turns of a conversation and a step of speculation. The oldest goes
  /// first.
  static constexpr size_t kCopies = 4;

  /// `sizes`: numbers of each state.
  Status reserve(std::span<const uint64_t> sizes);

  std::span<float* const> states() const { return states_; }
  uint64_t reserved_bytes() const;

  /// Whether the states are those behind the first `position` tokens.
  bool at(uint64_t position) const { return states_.empty() || position_ == position; }
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
  /// They have run.
  void commit(std::span<const uint32_t> tokens);
  /// They have not, or not all of them: the states are of no position.
  void lose() { position_.reset(); }

private:
  struct Copy {
    uint64_t position = 0; ///< 0 = empty; the beginning needs no copy
    ReservedMemory memory;
  };
  void keep_copy();

  ReservedMemory memory_;
  std::vector<float*> states_;
  std::vector<uint32_t> tokens_;
  std::optional<uint64_t> position_ = 0;
  Copy copies_[kCopies];
};

} // namespace cortiq::runtime
