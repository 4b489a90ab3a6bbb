#include "tools/cortiq-serve/openai/tool_calls/offer.h"

#include <algorithm>

#include "runtime/text/chat_template.h"

namespace cortiq::serve {
namespace {

using runtime::text::Notation;

constexpr size_t kMostTools = 256;
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostTextBytes = 16u << 10;

std::string_view template_of(const ServedModel& model) {
  const auto& text = model.text->config.chat_template;
  return text ? std::string_view(*text) : runtime::text::kDefaultChatTemplate;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMostNameBytes && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

/// Bytes of the longest text in a schema, names included: one may be a pattern, and long ones take long to compile.
size_t longest_text(const Json& schema) {
  size_t out = schema.is_string() ? schema.get_ref<const std::string&>().size() : 0;
  if (schema.is_array())
    for (const Json& part : schema)
      out = std::max(out, longest_text(part));
  if (schema.is_object())
    for (const auto& [name, part] : schema.items())
      out = std::max({out, name.size(), longest_text(part)});
  return out;
}

StatusOr<Function> parse_tool(const Json& tool, const std::string& where) {
  const Json* type = tool.is_object() ? Fields(tool).find("type") : nullptr;
  const Json* given = tool.is_object() ? Fields(tool).find("function") : nullptr;
  if (!type || *type != "function" || !given || !given->is_object())
    return invalid("`" + where + "` has to be an object of type function with a `function`");
  const Fields fields(*given);
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> name, fields.text("name"));
  if (!name || !is_name(*name))
    return invalid("`" + where + ".function.name` has to be 1 to " + std::to_string(kMostNameBytes) +
                   " letters, digits, dots, hyphens and underscores");
  Function out = {*name, {{"type", "object"}}};
  if (const Json* parameters = fields.find("parameters")) {
    if (!parameters->is_object())
      return invalid("`" + where + ".function.parameters` has to be a JSON schema");
    out.parameters = *parameters;
    if (longest_text(*parameters) > kMostTextBytes)
      return invalid("`" + where + ".function.parameters` holds a text of more than " + std::to_string(kMostTextBytes) +
                     " bytes");
  }
  CORTIQ_ASSIGN_OR_RETURN(out.strict, fields.flag("strict", false));
  return out;
}

enum class Choice { kNone, kAuto, kRequired };

/// `only`: the function that is named, where one is.
StatusOr<Choice> parse_choice(const Fields& fields, std::optional<std::string>& only) {
  const Json* choice = fields.find("tool_choice");
  if (!choice || *choice == "auto")
    return Choice::kAuto;
  if (*choice == "none")
    return Choice::kNone;
  if (*choice == "required")
    return Choice::kRequired;
  const Json* function = choice->is_object() ? Fields(*choice).find("function") : nullptr;
  const Json* name = function && function->is_object() ? Fields(*function).find("name") : nullptr;
  if (!name || !name->is_string())
    return invalid("`tool_choice` has to be none, auto, required or an object that names a function");
  only = name->get<std::string>();
  return Choice::kRequired;
}

} // namespace

StatusOr<ToolOffer> parse_tools(const Fields& fields, const ServedModel& model) {
  ToolOffer out;
  std::optional<std::string> only;
  CORTIQ_ASSIGN_OR_RETURN(const Choice choice, parse_choice(fields, only));
  CORTIQ_ASSIGN_OR_RETURN(out.several, fields.flag("parallel_tool_calls", true));
  const Json* tools = fields.find("tools");
  if (tools && !tools->is_array())
    return invalid("`tools` has to be an array");
  if (!tools || tools->empty()) {
    if (choice == Choice::kRequired)
      return invalid("`tool_choice` asks for a call, and `tools` offers nothing to call");
    return out;
  }
  if (tools->size() > kMostTools)
    return invalid("`tools` holds " + std::to_string(tools->size()) + " tools, at most are " +
                   std::to_string(kMostTools));
  for (const Json& tool : *tools) {
    CORTIQ_ASSIGN_OR_RETURN(Function function, parse_tool(tool, "tools[" + std::to_string(out.functions.size()) + "]"));
    for (const Function& other : out.functions)
      if (other.name == function.name)
        return invalid("`tools` holds two functions of the name " + dump(function.name));
    out.functions.push_back(std::move(function));
  }
  if (choice == Choice::kNone)
    return ToolOffer();
  const std::string_view chat_template = template_of(model);
  if (chat_template.find("tools") == std::string_view::npos)
    return invalid("`tools` cannot be offered: this model's chat template shows none");
  out.for_template = *tools;
  out.format = find_call_format(chat_template);
  out.must_call = choice == Choice::kRequired;
  if (out.must_call && !out.format)
    return invalid("`tool_choice` cannot ask for a call: how this model writes them is not known");
  if (only) {
    std::erase_if(out.functions, [&](const Function& function) { return function.name != *only; });
    if (out.functions.empty())
      return invalid("`tool_choice` names " + dump(*only) + ", which `tools` does not offer");
  }
  return out;
}

StatusOr<std::optional<ConstraintSource>>
constrain_calls(const ToolOffer& offer, const std::optional<ConstraintSource>& format, const ServedModel& model) {
  if (!offer.must_call)
    return format;
  const auto spell = [&](std::string_view text) {
    const std::vector<uint32_t> special = model.text->tokenizer.special_ids();
    const std::optional<uint32_t> id = model.text->tokenizer.token_id(text);
    return id && std::binary_search(special.begin(), special.end(), *id) ? "<[" + std::to_string(*id) + "]>"
                                                                         : lark_string(text);
  };
  // Each alone first: what is wrong with one has a place in it then.
  for (const Function& function : offer.functions)
    CORTIQ_RETURN_IF_ERROR(
        model.constraints
            ->check(function.strict ? Notation::kSchema : Notation::kLooseSchema, dump(function.parameters))
            .with_prefix("the parameters of " + dump(function.name) + " in `tools`"));
  const ConstraintSource calls = {Notation::kLark,
                                  offer.format->grammar(offer.functions, offer.several, template_of(model), spell)};
  CORTIQ_RETURN_IF_ERROR(model.constraints->make(calls.notation, calls.source)
                             .status()
                             .with_prefix("`tools` as one grammar of their calls"));
  return std::optional(calls);
}

} // namespace cortiq::serve
