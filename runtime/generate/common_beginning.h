#pragma once

// How much of a prompt need not run again.

#include <algorithm>
#include <cstdint>
#include <span>

namespace cortiq::runtime {

/// Tokens that `held` and `wanted` begin with alike; never all of `wanted`, whose last one has to run for its logits.
inline uint64_t common_beginning(std::span<const uint32_t> held, std::span<const uint32_t> wanted) {
  const auto difference = std::mismatch(held.begin(), held.end(), wanted.begin(), wanted.end());
  const auto same = static_cast<uint64_t>(difference.first - held.begin());
  return wanted.empty() ? 0 : std::min<uint64_t>(same, wanted.size() - 1);
}

} // namespace cortiq::runtime
