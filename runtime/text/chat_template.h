#pragma once

// Chat templates: Jinja as model publishers' tools run it. A template comes from a model file and is not trusted: it
// reaches no file, and a rendering is bounded in time, memory and output.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"
#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {

/// The template used where a model has none: `<|im_start|>role\n…<|im_end|>\n` a message.
extern const std::string_view kDefaultChatTemplate;

/// The local time, as `now` below expects it.
std::string local_time_now();

/// Renders `chat_template` with the variables of a JSON object (`messages`, `add_generation_prompt`, `bos_token`, …).
/// `now`
/// ("2031-03-07T08:09:10") is the clock of strftime_now. A refusal by raise_exception carries the template's own
/// sentence.
StatusOr<std::string> render_chat_template(std::string_view chat_template, std::string_view variables_json,
                                           std::string_view now);

struct EncodedChat {
  std::string text;
  std::vector<uint32_t> ids;
};

/// Renders and encodes: special tokens stand only where the template put them, what messages say is plain text. Nothing
/// is added around it, so a BOS is there only if the template prints it. When no message spells out a marker, the ids
/// are those of the rendered text.
StatusOr<EncodedChat> encode_chat(const Tokenizer& tokenizer, std::string_view chat_template,
                                  std::string_view variables_json, std::string_view now);

} // namespace cortiq::runtime::text
