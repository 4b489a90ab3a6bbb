#include "tools/cortiq-serve/openai/response_format.h"

namespace cortiq::serve {
namespace {

using runtime::text::Notation;

/// What takes long to compile grows with the square of an expression's length, in a grammar too.
constexpr size_t kMostGrammarBytes = 16u << 10;
constexpr const char* kAnyObject = R"({"type":"object"})";

StatusOr<ConstraintSource> parse_schema(const Fields& format) {
  const Json* named = format.find("json_schema");
  if (!named || !named->is_object())
    return invalid("`response_format.json_schema` has to be an object with a `schema`");
  const Fields fields(*named);
  const Json* schema = fields.find("schema");
  if (!schema)
    return ConstraintSource{Notation::kLooseSchema, kAnyObject};
  CORTIQ_ASSIGN_OR_RETURN(const bool strict, fields.flag("strict", false));
  return ConstraintSource{strict ? Notation::kSchema : Notation::kLooseSchema, dump(*schema)};
}

} // namespace

StatusOr<std::optional<ConstraintSource>> parse_response_format(const Fields& fields) {
  std::optional<ConstraintSource> out;
  if (const Json* format = fields.find("response_format")) {
    const Json* type = format->is_object() ? Fields(*format).find("type") : nullptr;
    if (!type || !type->is_string())
      return invalid("`response_format` has to be an object with a `type`");
    const std::string& name = type->get_ref<const std::string&>();
    if (name == "json_object") {
      out = ConstraintSource{Notation::kSchema, kAnyObject};
    } else if (name == "json_schema") {
      CORTIQ_ASSIGN_OR_RETURN(out, parse_schema(Fields(*format)));
    } else if (name != "text") {
      return invalid("`response_format.type` has to be text, json_object or json_schema");
    }
  }
  for (const auto& [name, notation] : {std::pair("grammar", Notation::kLark), std::pair("regex", Notation::kRegex)}) {
    CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> source, fields.text(name));
    if (!source)
      continue;
    if (source->size() > kMostGrammarBytes)
      return invalid(std::string("`") + name + "` has " + std::to_string(source->size()) + " bytes, at most are " +
                     std::to_string(kMostGrammarBytes));
    if (out)
      return invalid("`response_format`, `grammar` and `regex` exclude each other");
    out = ConstraintSource{notation, *source};
  }
  return out;
}

} // namespace cortiq::serve
