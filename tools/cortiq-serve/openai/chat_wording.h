#pragma once

// The answers of POST /v1/chat/completions.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/cortiq-serve/openai/tool_calls/offer.h"
#include "tools/cortiq-serve/openai/wording.h"

namespace cortiq::serve {

/// `model` must outlive it. Where `offer` has a format, calls are told from text.
std::unique_ptr<Wording> chat_wording(const ServedModel& model, std::string name, bool logprobs, const ToolOffer& offer,
                                      size_t choices);

} // namespace cortiq::serve
