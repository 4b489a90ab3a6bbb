#pragma once

// The sampler that suits a model.

#include <cstdint>
#include <span>

#include "runtime/engine.h"
#include "runtime/sampling/sampler.h"

namespace cortiq::runtime {

/// A sampler for `engine`'s logits that never chooses an id without text (`token_count` ids have one; 0: all) nor one
/// of `suppressed`, which the model forbids. `options` must be valid.
sampling::Sampler model_sampler(sampling::SamplingOptions options, const Engine& engine, uint64_t token_count,
                                std::span<const uint32_t> suppressed);

/// The same for logits of `vocab` ids.
sampling::Sampler model_sampler(sampling::SamplingOptions options, uint64_t vocab, uint64_t token_count,
                                std::span<const uint32_t> suppressed);

} // namespace cortiq::runtime
