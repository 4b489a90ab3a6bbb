#include "tools/cortiq-serve/engine/chunk_policy.h"

#include <algorithm>

namespace cortiq::serve {
namespace {

constexpr double kForget = 0.99;
// Steps that say something together.
constexpr double kEnough = 8;

} // namespace

uint64_t ChunkPolicy::chunk(uint64_t answering, uint64_t room) const {
  if (answering == 0)
    return room;
  // The least squares line through the steps.
  const double spread = weight_ * squares_ - tokens_ * tokens_;
  double wanted = static_cast<double>(answering); // a token costs what others cost, at most
  if (weight_ >= kEnough && spread > weight_) {
    const double slope = (weight_ * products_ - tokens_ * seconds_) / spread;
    const double alone = (seconds_ - slope * tokens_) / weight_ + slope * static_cast<double>(answering);
    if (slope > 0 && alone > 0)
      wanted = (kStretch - 1) * alone / slope;
  }
  return std::min(room, std::max(kLeast, static_cast<uint64_t>(std::min(wanted, 1e6))));
}

void ChunkPolicy::ran(uint64_t tokens, double seconds) {
  const auto n = static_cast<double>(tokens);
  weight_ = kForget * weight_ + 1;
  tokens_ = kForget * tokens_ + n;
  seconds_ = kForget * seconds_ + seconds;
  squares_ = kForget * squares_ + n * n;
  products_ = kForget * products_ + n * seconds;
}

} // namespace cortiq::serve
