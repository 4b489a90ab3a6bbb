#include "runtime/generate/model_sampler.h"

#include <algorithm>
#include <utility>

namespace cortiq::runtime {

sampling::Sampler model_sampler(sampling::SamplingOptions options, const Engine& engine, uint64_t token_count,
                                std::span<const uint32_t> suppressed) {
  return model_sampler(std::move(options), engine.vocab(), token_count, suppressed);
}

sampling::Sampler model_sampler(sampling::SamplingOptions options, uint64_t vocab, uint64_t token_count,
                                std::span<const uint32_t> suppressed) {
  options.suppress.insert(options.suppress.end(), suppressed.begin(), suppressed.end());
  const uint64_t limit = token_count == 0 ? vocab : std::min(vocab, token_count);
  return sampling::Sampler(options, static_cast<uint32_t>(limit));
}

} // namespace cortiq::runtime
