// POST /v1/chat/completions

#include <algorithm>
#include <iterator>
#include <string_view>

#include "runtime/text/conversation.h"
#include "tools/cortiq-serve/openai/ask.h"
#include "tools/cortiq-serve/openai/chat_wording.h"

namespace cortiq::serve {
namespace {

constexpr uint64_t kMostLikeliest = 20;
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};

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
    const std::string& role = given["role"].get_ref<const std::string&>();
    if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
      return invalid("`" + where + ".role` is none of system, developer, user, assistant, tool and function");
    Json message = given;
    if (message["role"] == "developer")
      message["role"] = "system"; // the older name, which templates know
    CORTIQ_ASSIGN_OR_RETURN(message["content"], parse_content(given, where));
    parse_arguments(message);
    out.push_back(std::move(message));
  }
  return out;
}

/// Bytes of what clients said: a template shows all of it. (Of earlier answers it may leave parts out.)
uint64_t said_bytes(const Json& messages) {
  uint64_t out = 0;
  for (const Json& message : messages)
    if (message["role"] != "assistant" && message["content"].is_string())
      out += message["content"].get_ref<const std::string&>().size();
  return out;
}

} // namespace

StatusOr<Ask> parse_chat(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  CORTIQ_ASSIGN_OR_RETURN(Common common, parse_common(fields, model, UINT64_MAX));
  CORTIQ_ASSIGN_OR_RETURN(const bool logprobs, fields.flag("logprobs", false));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> likeliest, fields.whole("top_logprobs", kMostLikeliest));
  if (likeliest && !logprobs)
    return invalid("`top_logprobs` needs `logprobs` to be true");
  if (logprobs)
    common.request.logprobs = static_cast<uint32_t>(likeliest.value_or(0));

  Json variables = Json::object();
  CORTIQ_ASSIGN_OR_RETURN(variables["messages"], parse_messages(fields));
  CORTIQ_RETURN_IF_ERROR(fit_text(said_bytes(variables["messages"]), model));
  CORTIQ_ASSIGN_OR_RETURN(ToolOffer offer, parse_tools(fields, model));
  CORTIQ_ASSIGN_OR_RETURN(std::optional<ConstraintSource> constraint, parse_response_format(fields));
  if (constraint && constraint->notation != runtime::text::Notation::kLark && !offer.must_call)
    offer.format = nullptr; // an object that the client asked for is no call
  CORTIQ_ASSIGN_OR_RETURN(constraint, constrain_calls(offer, constraint, model));
  if (!offer.for_template.is_null())
    variables["tools"] = offer.for_template;
  if (const Json* more = fields.find("chat_template_kwargs"); more && more->is_object())
    for (const auto& [name, value] : more->items())
      if (!variables.contains(name))
        variables[name] = value;
  CORTIQ_ASSIGN_OR_RETURN(
      const runtime::text::EncodedChat chat,
      runtime::text::encode_conversation(*model.text, dump(variables), runtime::text::local_time_now()));
  Ask out;
  CORTIQ_ASSIGN_OR_RETURN(out.requests, spread(common, {chat.ids}, constraint, model));
  out.wording = chat_wording(model, common.model, logprobs, offer, out.requests.size());
  out.model = common.model;
  out.stream = common.stream;
  out.include_usage = common.include_usage;
  return out;
}

} // namespace cortiq::serve
