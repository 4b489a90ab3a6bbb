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
  std::span<const RopeTableRef> tables_;
  std::vector<std::vector<float>> values_;
  std::vector<const float*> cos_, sin_;
};

} // namespace cortiq::runtime
