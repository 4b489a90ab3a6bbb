#pragma once

// One vector for many tokens.

#include <optional>
#include <string_view>

namespace cortiq::runtime {

enum class Pooling {
  kMean, ///< of all tokens
  kLast, ///< the last token's
};
/// "mean" or "last".
std::optional<Pooling> parse_pooling(std::string_view name);

} // namespace cortiq::runtime
