#include "runtime/session/rope_state.h"

#include <cmath>

namespace cortiq::runtime {

RopeState::RopeState(std::span<const RopeTableRef> tables, uint64_t max_batch) : tables_(tables) {
  for (const RopeTableRef& table : tables) {
    values_.emplace_back(2 * max_batch * table.inverse_frequencies.size());
    cos_.push_back(values_.back().data());
    sin_.push_back(values_.back().data() + max_batch * table.inverse_frequencies.size());
  }
}

void RopeState::fill(uint64_t first, uint64_t position, uint64_t count) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto& frequencies = tables_[t].inverse_frequencies;
    float* cosines = values_[t].data() + first * frequencies.size();
    float* sines = cosines + (sin_[t] - cos_[t]);
    for (uint64_t token = 0; token < count; ++token)
      for (size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = static_cast<double>(position + token) * frequencies[i];
        *cosines++ = static_cast<float>(std::cos(angle)) * tables_[t].magnitude;
        *sines++ = static_cast<float>(std::sin(angle)) * tables_[t].magnitude;
      }
  }
}

} // namespace cortiq::runtime
