#include "runtime/session/pooling.h"

namespace cortiq::runtime {

std::optional<Pooling> parse_pooling(std::string_view name) {
  if (name == "mean")
    return Pooling::kMean;
  return name == "last" ? std::optional(Pooling::kLast) : std::nullopt;
}

} // namespace cortiq::runtime
