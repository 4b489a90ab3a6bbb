// <tool_call>{"name": …, "arguments": {…}}</tool_call>: Hermes, Qwen 2.5 and 3, SmolLM 3 and their kin.

#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kOpeners[] = {kOpen};

bool speaks(std::string_view chat_template) {
  return chat_template.find(kOpen) != std::string_view::npos;
}

ReadCalls read(std::string_view text, bool whole, const std::vector<Function>&) {
  const size_t begin = text.find_first_not_of(" \r\n\t", kOpen.size());
  if (begin == std::string_view::npos || text[begin] != '{')
    return {};
  const size_t end = json_end(text, begin);
  if (end == std::string_view::npos)
    return {};
  const size_t close = text.find(kClose, end);
  if (close == std::string_view::npos && !whole)
    return {};
  ReadCalls out;
  ToolCall call;
  if (!read_call(text.substr(begin, end - begin), {"arguments", "parameters"}, call))
    return {};
  out.taken = close == std::string_view::npos ? end : close + kClose.size();
  out.calls.push_back(std::move(call));
  return out;
}

std::string grammar(const std::vector<Function>& functions, bool several, std::string_view, const Spell& spell) {
  return std::string(several ? "start: call (\"\\n\" call)*\n" : "start: call\n") + "call: " + spell(kOpen) +
         " \"\\n\" " + any_call(functions) + " \"\\n\" " + spell(kClose) + "\n" + call_rules(functions, "arguments");
}

} // namespace

const CallFormat kHermesCalls = {"hermes", speaks, kOpeners, false, read, grammar};

} // namespace cortiq::serve
