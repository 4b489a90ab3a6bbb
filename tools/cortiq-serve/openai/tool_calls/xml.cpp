// <tool_call><function=name><parameter=x>value</parameter></function></tool_call>: Qwen 3 Coder, Qwen 3.5.

#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kFunction = "<function=", kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=", kParameterEnd = "</parameter>";
constexpr std::string_view kOpeners[] = {kOpen};
constexpr size_t npos = std::string_view::npos;

bool speaks(std::string_view chat_template) {
  return chat_template.find(kFunction) != npos && chat_template.find(kParameter) != npos;
}

/// The schema of a function's parameter; null where it has none.
Json schema_of(const std::vector<Function>& functions, std::string_view function, std::string_view parameter) {
  for (const Function& known : functions)
    if (known.name == function && known.parameters.contains("properties") &&
        known.parameters["properties"].is_object() && known.parameters["properties"].contains(parameter))
      return known.parameters["properties"][std::string(parameter)];
  return nullptr;
}

bool is_text(const Json& schema) {
  return !schema.is_object() || !schema.contains("type") || schema["type"] == "string";
}

/// A value stands there as it is when it is a text, else as JSON.
Json value_of(std::string_view text, const Json& schema) {
  if (text.starts_with('\n'))
    text.remove_prefix(1);
  if (text.ends_with('\n'))
    text.remove_suffix(1);
  if (schema.is_object() && !is_text(schema))
    if (Json value = Json::parse(text, nullptr, false); !value.is_discarded())
      return value;
  return Json(std::string(text));
}

ReadCalls read(std::string_view text, bool whole, const std::vector<Function>& functions) {
  const size_t begin = text.find(kFunction), name_end = begin == npos ? npos : text.find('>', begin);
  const size_t function_end = name_end == npos ? npos : text.find(kFunctionEnd, name_end);
  if (function_end == npos)
    return {};
  const size_t close = text.find(kClose, function_end);
  if (close == npos && !whole)
    return {};
  const std::string name(text.substr(begin + kFunction.size(), name_end - begin - kFunction.size()));
  Json arguments = Json::object();
  for (size_t at = name_end; (at = text.find(kParameter, at)) < function_end;) {
    const size_t key_end = text.find('>', at);
    const size_t end = key_end == npos ? npos : text.find(kParameterEnd, key_end);
    if (end == npos || end > function_end)
      return {};
    const std::string key(text.substr(at + kParameter.size(), key_end - at - kParameter.size()));
    arguments[key] = value_of(text.substr(key_end + 1, end - key_end - 1), schema_of(functions, name, key));
    at = end;
  }
  return {close == npos ? function_end + kFunctionEnd.size() : close + kClose.size(), {{name, dump(arguments)}}};
}

bool is_required(const Json& schema, const std::string& name) {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::find(required->begin(), required->end(), Json(name)) != required->end();
}

std::string grammar(const std::vector<Function>& functions, bool several, std::string_view, const Spell& spell) {
  std::string rules, heads;
  size_t number = 0;
  for (size_t i = 0; i < functions.size(); ++i) {
    const Json& schema = functions[i].parameters;
    heads += "f" + std::to_string(i) + ": " + lark_string("<function=" + functions[i].name + ">\n");
    const auto properties = schema.find("properties");
    if (properties != schema.end() && properties->is_object())
      for (const auto& [name, part] : properties->items()) {
        const std::string rule = "p" + std::to_string(number++);
        heads += " " + rule + (is_required(schema, name) ? "" : "?");
        std::string value = "/[^<]*/";
        if (!is_text(part)) {
          Json alone = part;
          for (const char* shared : {"$defs", "definitions"})
            if (schema.contains(shared))
              alone[shared] = schema[shared];
          alone["x-guidance"] = {{"whitespace_flexible", false}, {"lenient", true}, {"coerce_one_of", true}};
          value = "%json " + dump(alone);
        }
        rules += rule + ": " + lark_string("<parameter=" + name + ">\n") + " v" + rule + " \"\\n</parameter>\\n\"\nv" +
                 rule + ": " + value + "\n";
      }
    heads += " \"</function>\"\n";
  }
  return std::string(several ? "start: call (\"\\n\" call)*\n" : "start: call\n") + "call: " + spell(kOpen) +
         " \"\\n\" " + any_call(functions) + " \"\\n\" " + spell(kClose) + "\n" + heads + rules;
}

} // namespace

const CallFormat kXmlCalls = {"xml", speaks, kOpeners, false, read, grammar};

} // namespace cortiq::serve
