#pragma once

// What rotary positions turn a batch's heads by.

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// Cosines and sines of a batch's positions, one table after the other: [cos, sin][token][pair].
class RopeState {
public:
  RopeState(std::span<const RopeTableRef> tables, uint64_t max_batch);

  /// Tokens [first, first + count) of the batch stand at `position` and behind it.
  void fill(uint64_t first, uint64_t position, uint64_t count);

  std::span<const float* const> cosines() const { return cos_; }
  std::span<const float* const> sines() const { return sin_; }

private:
  struct Turn {
    double cosine, sine;
  };
  struct Turns {
    std::vector<Turn> within; ///< by 0, 1, … positions, pair by pair
    std::vector<Turn> first;  ///< by the first position of `run`
    uint64_t run = 0;
  };

  static void turn_by(const RopeTableRef& table, uint64_t position, Turn* out);

  std::span<const RopeTableRef> tables_;
  std::vector<Turns> turns_;
  std::vector<std::vector<float>> values_;
  std::vector<const float*> cos_, sin_;
};

} // namespace cortiq::runtime
