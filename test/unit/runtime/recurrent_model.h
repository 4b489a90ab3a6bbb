#pragma once

// A small model with recurrent state and a cache.

#include <cstdint>
#include <string>

#include "formats/status.h"
#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

inline constexpr uint32_t kRecurrentVocab = 29;
inline constexpr uint32_t kRecurrentPoison = 28; ///< a token whose keys do not fit an f16 cache

/// Embedding, short convolution, gated delta, attention, head. No norms: values stay as they come. With a window the
/// cache is a ring, or, for comparison, one that keeps everything.
Status write_recurrent_model(const std::string& path, uint32_t window = 0, bool ring = false,
                             Numbers numbers = Numbers::kF32);

} // namespace cortiq::test
