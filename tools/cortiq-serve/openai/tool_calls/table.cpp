#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {
namespace {

/// The first that a template speaks counts: who writes XML inside of <tool_call> stands before who writes JSON there.
constexpr const CallFormat* kFormats[] = {&kXmlCalls, &kMistralCalls, &kLlama3Calls, &kHermesCalls};

/// References of a schema that became a part of another one.
void move_references(Json& schema, const std::string& root) {
  if (schema.is_array()) {
    for (Json& part : schema)
      move_references(part, root);
  } else if (schema.is_object()) {
    for (auto& [name, part] : schema.items())
      if (name == "$ref" && part.is_string() && part.get_ref<const std::string&>().starts_with('#'))
        part = root + part.get_ref<const std::string&>().substr(1);
      else
        move_references(part, root);
  }
}

} // namespace

const CallFormat* find_call_format(std::string_view chat_template) {
  for (const CallFormat* format : kFormats)
    if (format->speaks(chat_template))
      return format;
  return nullptr;
}

size_t json_end(std::string_view text, size_t from) {
  int level = 0;
  bool in_string = false;
  for (size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++level;
    } else if (c == '}' || c == ']') {
      if (--level <= 0)
        return i + 1;
    }
  }
  return std::string_view::npos;
}

bool read_call(std::string_view json, std::initializer_list<const char*> fields, ToolCall& out) {
  const StatusOr<Json> call = parse_body(json);
  if (!call.ok() || !call->contains("name") || !(*call)["name"].is_string())
    return false;
  out = {(*call)["name"].get<std::string>(), "{}"};
  for (const char* field : fields)
    if (const auto found = call->find(field); found != call->end() && !found->is_null()) {
      // Some models write the arguments as JSON inside of a string, as clients see them.
      const bool text = found->is_string() && parse_body(found->get_ref<const std::string&>()).ok();
      out.arguments = text ? found->get<std::string>() : dump(*found);
      break;
    }
  return true;
}

std::string call_rules(const std::vector<Function>& functions, const char* field) {
  std::string out;
  for (size_t i = 0; i < functions.size(); ++i) {
    Json arguments = functions[i].parameters;
    move_references(arguments, std::string("#/properties/") + field);
    const Json call = {
        {"type", "object"},
        {"properties", {{"name", {{"const", functions[i].name}}}, {field, std::move(arguments)}}},
        {"required", Json::array({"name", field})},
        {"additionalProperties", false},
        {"x-guidance",
         {{"whitespace_pattern", "[ \\n]{1,8}"}, {"lenient", !functions[i].strict}, {"coerce_one_of", true}}}};
    out += "f" + std::to_string(i) + ": %json " + dump(call) + "\n";
  }
  return out;
}

std::string any_call(const std::vector<Function>& functions) {
  std::string out = "(";
  for (size_t i = 0; i < functions.size(); ++i)
    out += (i == 0 ? "f" : " | f") + std::to_string(i);
  return out + ")";
}

std::string lark_string(std::string_view text) {
  return dump(Json(std::string(text)));
}

} // namespace cortiq::serve
