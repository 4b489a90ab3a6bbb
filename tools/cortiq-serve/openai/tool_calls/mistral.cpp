// [TOOL_CALLS][{"name": …, "arguments": {…}}, …], and of later models [TOOL_CALLS]name[ARGS]{…}: Mistral.

#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {
namespace {

constexpr std::string_view kOpen = "[TOOL_CALLS]", kArguments = "[ARGS]", kId = "[CALL_ID]";
constexpr std::string_view kOpeners[] = {kOpen};
constexpr size_t npos = std::string_view::npos;

bool speaks(std::string_view chat_template) {
  return chat_template.find(kOpen) != npos;
}

/// name[ARGS]{…}
ReadCalls read_named(std::string_view text, size_t begin) {
  const size_t brace = text.find('{', begin);
  const size_t end = brace == npos ? npos : json_end(text, brace);
  if (end == npos)
    return {};
  std::string_view name = text.substr(begin, brace - begin);
  name = name.substr(0, std::min(name.find(kArguments), name.find(kId)));
  name = name.substr(0, name.find_last_not_of(" \r\n\t") + 1);
  const std::string arguments(text.substr(brace, end - brace));
  if (name.empty() || !parse_body(arguments).ok())
    return {};
  return {end, {{std::string(name), arguments}}};
}

ReadCalls read(std::string_view text, bool, const std::vector<Function>&) {
  const size_t begin = text.find_first_not_of(" \r\n\t", kOpen.size());
  if (begin == npos)
    return {};
  if (text[begin] != '[')
    return read_named(text, begin);
  const size_t end = json_end(text, begin);
  if (end == npos)
    return {};
  ReadCalls out;
  for (size_t at = begin + 1; (at = text.find('{', at)) != npos && at < end;) {
    const size_t object = json_end(text, at);
    ToolCall call;
    if (object == npos || !read_call(text.substr(at, object - at), {"arguments"}, call))
      return {};
    out.calls.push_back(std::move(call));
    at = object;
  }
  if (!out.calls.empty())
    out.taken = end;
  return out;
}

std::string grammar(const std::vector<Function>& functions, bool several, std::string_view chat_template,
                    const Spell& spell) {
  if (chat_template.find(kArguments) == npos)
    return "start: " + spell(kOpen) + " \" \"? \"[\" " + any_call(functions) +
           (several ? " (\",\" \" \"? " + any_call(functions) + ")*" : "") + " \"]\"\n" +
           call_rules(functions, "arguments");
  std::string out = "start: call" + std::string(several ? "+" : "") + "\ncall: ";
  for (size_t i = 0; i < functions.size(); ++i)
    out += (i == 0 ? "" : " | ") + spell(kOpen) + " " + lark_string(functions[i].name) + " " + spell(kArguments) +
           " a" + std::to_string(i);
  out += "\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    Json schema = functions[i].parameters;
    schema["x-guidance"] = {
        {"whitespace_pattern", "[ \\n]{1,8}"}, {"lenient", !functions[i].strict}, {"coerce_one_of", true}};
    out += "a" + std::to_string(i) + ": %json " + dump(schema) + "\n";
  }
  return out;
}

} // namespace

const CallFormat kMistralCalls = {"mistral", speaks, kOpeners, false, read, grammar};

} // namespace cortiq::serve
