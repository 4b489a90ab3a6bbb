#pragma once

// One vector for many tokens.

#include <optional>
#include <span>
#include <string_view>

namespace cortiq::runtime {

enum class Pooling {
  kMean, ///< of all tokens
  kLast, ///< the last token's
};
/// "mean" or "last".
std::optional<Pooling> parse_pooling(std::string_view name);

/// Stretches a vector to length 1; one of zeros stays. False: it holds what is no number.
bool stretch_to_one(std::span<float> vector);

} // namespace cortiq::runtime
