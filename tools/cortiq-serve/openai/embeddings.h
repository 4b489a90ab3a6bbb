#pragma once

// POST /v1/embeddings

#include <optional>
#include <string>
#include <vector>

#include "runtime/session/pooling.h"
#include "tools/cortiq-serve/openai/fields.h"
#include "tools/cortiq-serve/openai/served_model.h"

namespace cortiq::serve {

struct EmbeddingAsk {
  std::string model; ///< as the client named it
  std::vector<std::vector<uint32_t>> inputs;
  formats::OverlaySelection overlay;
  runtime::Pooling pooling = runtime::Pooling::kMean;
  std::optional<uint64_t> dimensions; ///< kept of each vector
  bool base64 = false;
};

StatusOr<EmbeddingAsk> parse_embeddings(const Json& body, const ServedModel& model);

/// `vectors`: of length 1, one an input.
Json embeddings_json(const EmbeddingAsk& ask, const std::vector<std::vector<float>>& vectors);

} // namespace cortiq::serve
