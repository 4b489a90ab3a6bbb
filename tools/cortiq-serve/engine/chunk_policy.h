#pragma once

// How many tokens of prompts a step takes beside those of answers: prompts get on, and nobody who reads an answer waits
// long for its next token.

#include <cstdint>
#include <optional>

namespace cortiq::serve {

/// Learns from the steps that ran what one costs: a part that it always takes and a part for each token.
class ChunkPolicy {
public:
  /// Steps with tokens of prompts take this many times what they take without, at most.
  static constexpr double kStretch = 2;
  /// Tokens of prompts that a step takes in any case.
  static constexpr uint64_t kLeast = 16;

  /// Tokens of prompts for a step that has `answering` others and room for `room` more.
  uint64_t chunk(uint64_t answering, uint64_t room) const;
  /// A step of `tokens` tokens took `seconds`.
  void ran(uint64_t tokens, double seconds);

private:
  /// Seconds of a step: start + slope * tokens.
  struct Line {
    double start, slope;
  };
  std::optional<Line> line() const;

  // Sums over the steps, of which the old ones count less and less.
  double weight_ = 0, tokens_ = 0, seconds_ = 0, squares_ = 0, products_ = 0;
};

} // namespace cortiq::serve
