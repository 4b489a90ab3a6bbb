#include "runtime/session/rope_state.h"

#include <cmath>

namespace cortiq::runtime {
namespace {

// Positions that are turned from one that was reckoned by itself. Cosines of a batch took a millisecond on a processor
// whose GPU then needs thirty for all else.
constexpr uint64_t kRun = 64;

} // namespace

RopeState::RopeState(std::span<const RopeTableRef> tables, uint64_t max_batch) : tables_(tables) {
  for (const RopeTableRef& table : tables) {
    const size_t pairs = table.inverse_frequencies.size();
    values_.emplace_back(2 * max_batch * pairs);
    cos_.push_back(values_.back().data());
    sin_.push_back(values_.back().data() + max_batch * pairs);
    Turns& turns = turns_.emplace_back();
    turns.within.resize(kRun * pairs);
    turns.first.resize(pairs);
    for (uint64_t offset = 0; offset < kRun; ++offset)
      turn_by(table, offset, turns.within.data() + offset * pairs);
    turn_by(table, 0, turns.first.data());
  }
}

void RopeState::turn_by(const RopeTableRef& table, uint64_t position, Turn* out) {
  for (const auto frequency : table.inverse_frequencies) {
    const double angle = static_cast<double>(position) * frequency;
    *out++ = {std::cos(angle), std::sin(angle)};
  }
}

void RopeState::fill(uint64_t first, uint64_t position, uint64_t count) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t pairs = tables_[t].inverse_frequencies.size();
    const float magnitude = tables_[t].magnitude;
    Turns& turns = turns_[t];
    float* cosines = values_[t].data() + first * pairs;
    float* sines = cosines + (sin_[t] - cos_[t]);
    for (uint64_t at = position; at < position + count; ++at) {
      if (at / kRun != turns.run) {
        turns.run = at / kRun;
        turn_by(tables_[t], turns.run * kRun, turns.first.data());
      }
      const Turn* within = turns.within.data() + at % kRun * pairs;
      for (size_t i = 0; i < pairs; ++i) {
        const auto [c, s] = turns.first[i];
        *cosines++ = static_cast<float>(c * within[i].cosine - s * within[i].sine) * magnitude;
        *sines++ = static_cast<float>(s * within[i].cosine + c * within[i].sine) * magnitude;
      }
    }
  }
}

} // namespace cortiq::runtime
