// {"name": …, "parameters": {…}} as the whole answer, with or without <|python_tag|> before it: Llama 3.

#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";
constexpr std::string_view kOpeners[] = {kTag, "{"};

bool speaks(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; };
  return has(kTag) || (has("<|start_header_id|>") && has("\"parameters\""));
}

ReadCalls read(std::string_view text, bool whole, const std::vector<Function>&) {
  ReadCalls out;
  if (!whole)
    return out;
  size_t at = text.starts_with(kTag) ? kTag.size() : 0;
  // Several stand one behind the other, with semicolons between them.
  while ((at = text.find_first_not_of(" \r\n\t;", at)) != std::string_view::npos && text[at] == '{') {
    const size_t end = json_end(text, at);
    ToolCall call;
    if (end == std::string_view::npos || !read_call(text.substr(at, end - at), {"parameters", "arguments"}, call))
      return out;
    out.calls.push_back(std::move(call));
    out.taken = at = end;
  }
  return out;
}

std::string grammar(const std::vector<Function>& functions, bool, std::string_view, const Spell&) {
  return "start: " + any_call(functions) + "\n" + call_rules(functions, "parameters");
}

} // namespace

const CallFormat kLlama3Calls = {"llama3", speaks, kOpeners, true, read, grammar};

} // namespace cortiq::serve
