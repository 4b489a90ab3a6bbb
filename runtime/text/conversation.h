#pragma once

// A conversation through a model's own chat template.

#include <string_view>

#include "formats/status.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/text_section.h"

namespace cortiq::runtime::text {

/// Renders and encodes a conversation (see encode_chat). `variables_json`: an object with `messages` and whatever else
/// the template reads; where they are not given, `add_generation_prompt` is true, and `bos_token` and `eos_token` are
/// the model's. Fails for what is no such object.
StatusOr<EncodedChat> encode_conversation(const TextModel& model, std::string_view variables_json,
                                          std::string_view now);

} // namespace cortiq::runtime::text
