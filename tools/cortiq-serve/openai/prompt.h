#pragma once

// Texts and token ids of requests that are no conversations.

#include <cstdint>
#include <vector>

#include "tools/cortiq-serve/openai/fields.h"
#include "tools/cortiq-serve/openai/served_model.h"

namespace cortiq::serve {

/// The ids of field `name`: a text, ids, or an array of at most `most` of either.
StatusOr<std::vector<std::vector<uint32_t>>> parse_prompts(const Fields& fields, const char* name, uint64_t most,
                                                           const ServedModel& model);

} // namespace cortiq::serve
