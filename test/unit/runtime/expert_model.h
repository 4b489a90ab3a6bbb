#pragma once

// A small model with a mixture of experts.

#include <string>

#include "formats/status.h"
#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

inline constexpr uint32_t kExpertVocab = 29;

/// Embedding, six experts of which a token chooses two, head; products read quantized activations.
Status write_expert_model(const std::string& path, Numbers numbers);

} // namespace cortiq::test
