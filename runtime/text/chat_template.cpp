#include "runtime/text/chat_template.h"

#include <ctime>

#include "runtime/text/abi_bytes.h"
#include "runtime/text/tokenizer_access.h"

namespace cortiq::runtime::text {

const std::string_view kDefaultChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string local_time_now() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return std::string(text, length);
}

StatusOr<std::string> render_chat_template(std::string_view chat_template, std::string_view variables_json,
                                           std::string_view now) {
  cortiq_text_quiet();
  AbiBytes text, error;
  int32_t result =
      cortiq_text_render(abi_view(chat_template), abi_view(variables_json), abi_view(now), text.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error));
  return text.text();
}

StatusOr<EncodedChat> encode_chat(const Tokenizer& tokenizer, std::string_view chat_template,
                                  std::string_view variables_json, std::string_view now) {
  AbiBytes text, ids, error;
  int32_t result = cortiq_text_encode_chat(TokenizerAccess::handle(tokenizer), abi_view(chat_template),
                                           abi_view(variables_json), abi_view(now), text.out(), ids.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error));
  return EncodedChat{text.text(), ids.ids()};
}

} // namespace cortiq::runtime::text
