#include "runtime/text/conversation.h"

#include <nlohmann/json.hpp>

namespace cortiq::runtime::text {

StatusOr<EncodedChat> encode_conversation(const TextModel& model, std::string_view variables_json,
                                          std::string_view now) {
  using Json = nlohmann::ordered_json;
  Json variables = Json::parse(variables_json, nullptr, false);
  if (!variables.is_object() || !variables.contains("messages") || !variables["messages"].is_array())
    return invalid("a conversation is a JSON object with an array `messages`");
  const TextConfig& config = model.config;
  const auto add = [&](const char* name, const Json& value) {
    if (!variables.contains(name))
      variables[name] = value;
  };
  add("add_generation_prompt", true);
  if (config.bos_id)
    add("bos_token", model.tokenizer.token_text(*config.bos_id).value_or(""));
  if (!config.eos_ids.empty())
    add("eos_token", model.tokenizer.token_text(config.eos_ids.front()).value_or(""));
  return encode_chat(model.tokenizer,
                     config.chat_template ? std::string_view(*config.chat_template) : kDefaultChatTemplate,
                     variables.dump(-1, ' ', false, Json::error_handler_t::replace), now);
}

} // namespace cortiq::runtime::text
