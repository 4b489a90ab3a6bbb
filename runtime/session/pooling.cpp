#include "runtime/session/pooling.h"

#include <cmath>

namespace cortiq::runtime {

std::optional<Pooling> parse_pooling(std::string_view name) {
  if (name == "mean")
    return Pooling::kMean;
  return name == "last" ? std::optional(Pooling::kLast) : std::nullopt;
}

bool stretch_to_one(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector)
    squares += static_cast<double>(value) * value;
  if (!std::isfinite(squares))
    return false;
  const double length = std::sqrt(squares);
  for (float& value : vector)
    value = length > 0 ? static_cast<float>(value / length) : 0;
  return true;
}

} // namespace cortiq::runtime
