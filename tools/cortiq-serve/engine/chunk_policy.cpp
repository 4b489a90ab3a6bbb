#include "tools/cortiq-serve/engine/chunk_policy.h"

#include <algorithm>

namespace cortiq::serve {
namespace {

constexpr double kForget = 0.99;
// Steps that say something together.
constexpr double kEnough = 8;
// A step that takes so many times what was to be expected was held up by other programs: it counts as this much.
constexpr double kDisturbed = 2;

} // namespace

std::optional<ChunkPolicy::Line> ChunkPolicy::line() const {
  // The least squares line through the steps.
  const double spread = weight_ * squares_ - tokens_ * tokens_;
  if (weight_ < kEnough || spread <= weight_)
    return std::nullopt;
  const double slope = (weight_ * products_ - tokens_ * seconds_) / spread;
  return Line{(seconds_ - slope * tokens_) / weight_, slope};
}

uint64_t ChunkPolicy::chunk(uint64_t answering, uint64_t room) const {
  if (answering == 0)
    return room;
  double wanted = static_cast<double>(answering); // a token costs what others cost, at most
  if (const std::optional<Line> cost = line()) {
    const double alone = cost->start + cost->slope * static_cast<double>(answering);
    if (cost->slope > 0 && alone > 0)
      wanted = (kStretch - 1) * alone / cost->slope;
  }
  return std::min(room, std::max(kLeast, static_cast<uint64_t>(std::min(wanted, 1e6))));
}

void ChunkPolicy::ran(uint64_t tokens, double seconds) {
  const auto n = static_cast<double>(tokens);
  if (const std::optional<Line> cost = line())
    if (const double expected = cost->start + cost->slope * n; expected > 0)
      seconds = std::min(seconds, kDisturbed * expected);
  weight_ = kForget * weight_ + 1;
  tokens_ = kForget * tokens_ + n;
  seconds_ = kForget * seconds_ + seconds;
  squares_ = kForget * squares_ + n * n;
  products_ = kForget * products_ + n * seconds;
}

} // namespace cortiq::serve
