#pragma once

// How likely the model thought a token.

#include <cstdint>
#include <span>

#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

/// Logarithms of the softmax of `logits` as they left the model: for `id`, and the `count` likeliest ids. An id that
/// cannot come (a logit of minus infinity) gets kLeastLogprob, which JSON can hold.
inline constexpr double kLeastLogprob = -9999;
TokenRecord token_record(std::span<const float> logits, uint32_t id, uint32_t count);

} // namespace cortiq::serve
