#include "tools/cortiq-serve/engine/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cortiq::serve {

TokenRecord token_record(std::span<const float> logits, uint32_t id, uint32_t count) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(logit - largest);
  const double base = largest + std::log(sum);
  const auto logprob = [&](uint32_t of) { return std::max(kLeastLogprob, logits[of] - base); };
  TokenRecord out;
  out.id = id;
  out.logprob = logprob(id);
  std::vector<uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0u);
  const auto first = std::min<size_t>(count, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(),
                    [&](uint32_t a, uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (size_t i = 0; i < first; ++i)
    out.likeliest.emplace_back(ids[i], logprob(ids[i]));
  return out;
}

} // namespace cortiq::serve
