// POST /v1/chat/completions

#include "runtime/text/conversation.h"
#include "tools/cortiq-serve/openai/ask.h"

namespace cortiq::serve {
namespace {

constexpr uint64_t kMostLikeliest = 20;

/// A message's content as text. Parts are joined; what is no text is refused.
StatusOr<Json> parse_content(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null())
    return message.contains("tool_calls") ? Json("") : StatusOr<Json>(invalid("`" + where + ".content` is missing"));
  if (content->is_string())
    return *content;
  if (!content->is_array())
    return invalid("`" + where + ".content` has to be a string or an array of parts");
  std::string out;
  for (const Json& part : *content) {
    if (!part.is_object() || !part.contains("type") || part["type"] != "text" || !part.contains("text") ||
        !part["text"].is_string())
      return invalid("`" + where + ".content` holds a part that is no text; this model takes text only");
    out += part["text"].get_ref<const std::string&>();
  }
  return Json(out);
}

/// Templates want the arguments of calls as objects; clients send them as JSON text.
void parse_arguments(Json& message) {
  if (!message.contains("tool_calls") || !message["tool_calls"].is_array())
    return;
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
      continue;
    Json& function = call["function"];
    if (!function.contains("arguments") || !function["arguments"].is_string())
      continue;
    const StatusOr<Json> arguments = parse_body(function["arguments"].get_ref<const std::string&>());
    if (arguments.ok())
      function["arguments"] = *arguments;
  }
}

StatusOr<Json> parse_messages(const Fields& fields) {
  const Json* messages = fields.find("messages");
  if (!messages || !messages->is_array() || messages->empty())
    return invalid("`messages` has to be an array of at least one message");
  Json out = Json::array();
  for (const Json& given : *messages) {
    const std::string where = "messages[" + std::to_string(out.size()) + "]";
    if (!given.is_object() || !given.contains("role") || !given["role"].is_string())
      return invalid("`" + where + "` has to be an object with a `role`");
    Json message = given;
    if (message["role"] == "developer")
      message["role"] = "system"; // the older name, which templates know
    CORTIQ_ASSIGN_OR_RETURN(message["content"], parse_content(given, where));
    parse_arguments(message);
    out.push_back(std::move(message));
  }
  return out;
}

class ChatWording : public Wording {
public:
  ChatWording(const ServedModel& model, std::string name, bool logprobs)
      : model_(model), name_(std::move(name)), logprobs_(logprobs), id_(new_id("chatcmpl-")) {}

  Json first_chunk() const override { return chunk_of({{"role", "assistant"}, {"content", ""}}, nullptr, {}); }
  Json chunk(const Piece& piece) const override { return chunk_of({{"content", piece.text}}, nullptr, piece.tokens); }
  Json last_chunk(const Finish& finish) const override { return chunk_of(Json::object(), finish_reason(finish), {}); }
  Json usage_chunk(const Finish& finish) const override {
    Json out = head("chat.completion.chunk");
    out["choices"] = Json::array();
    out["usage"] = usage_json(finish);
    return out;
  }
  Json whole(const std::string& text, const std::vector<TokenRecord>& tokens, const Finish& finish) const override {
    Json out = head("chat.completion");
    Json choice = {{"index", 0},
                   {"message", {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}}},
                   {"logprobs", logprobs_ ? logprobs(tokens) : Json()},
                   {"finish_reason", finish_reason(finish)}};
    out["choices"] = Json::array({std::move(choice)});
    out["usage"] = usage_json(finish);
    return out;
  }

private:
  Json head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", static_cast<int64_t>(std::time(nullptr))}, {"model", name_}};
  }
  Json chunk_of(Json delta, const char* reason, const std::vector<TokenRecord>& tokens) const {
    Json out = head("chat.completion.chunk");
    Json choice = {{"index", 0},
                   {"delta", std::move(delta)},
                   {"logprobs", logprobs_ && !tokens.empty() ? logprobs(tokens) : Json()},
                   {"finish_reason", reason ? Json(reason) : Json()}};
    out["choices"] = Json::array({std::move(choice)});
    return out;
  }
  Json entry(uint32_t id, double logprob) const {
    const std::string bytes = model_.token_bytes(id);
    Json list = Json::array();
    for (const char byte : bytes)
      list.push_back(static_cast<unsigned char>(byte));
    return {{"token", model_.token_name(id)}, {"logprob", logprob}, {"bytes", std::move(list)}};
  }
  Json logprobs(const std::vector<TokenRecord>& tokens) const {
    Json content = Json::array();
    for (const TokenRecord& token : tokens) {
      Json one = entry(token.id, token.logprob);
      one["top_logprobs"] = Json::array();
      for (const auto& [id, logprob] : token.likeliest)
        one["top_logprobs"].push_back(entry(id, logprob));
      content.push_back(std::move(one));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  const ServedModel& model_;
  const std::string name_;
  const bool logprobs_;
  const std::string id_;
};

} // namespace

StatusOr<Ask> parse_chat(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  CORTIQ_ASSIGN_OR_RETURN(Ask out, parse_common(fields, model, UINT64_MAX));
  Json variables = Json::object();
  CORTIQ_ASSIGN_OR_RETURN(variables["messages"], parse_messages(fields));
  if (const Json* tools = fields.find("tools");
      tools && !(body.contains("tool_choice") && body["tool_choice"] == "none")) {
    if (!tools->is_array())
      return invalid("`tools` has to be an array");
    variables["tools"] = *tools;
  }
  if (const Json* more = fields.find("chat_template_kwargs"); more && more->is_object())
    for (const auto& [name, value] : more->items())
      if (!variables.contains(name))
        variables[name] = value;
  CORTIQ_ASSIGN_OR_RETURN(
      runtime::text::EncodedChat chat,
      runtime::text::encode_conversation(*model.text, dump(variables), runtime::text::local_time_now()));
  out.request.prompt = std::move(chat.ids);
  CORTIQ_RETURN_IF_ERROR(fit_context(out.request, model));

  CORTIQ_ASSIGN_OR_RETURN(const bool logprobs, fields.flag("logprobs", false));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> likeliest, fields.whole("top_logprobs", kMostLikeliest));
  if (likeliest && !logprobs)
    return invalid("`top_logprobs` needs `logprobs` to be true");
  if (logprobs)
    out.request.logprobs = static_cast<uint32_t>(likeliest.value_or(0));
  out.wording = std::make_unique<ChatWording>(model, out.model, logprobs);
  return out;
}

} // namespace cortiq::serve
