#include "tools/cortiq-serve/openai/fields.h"

#include <cmath>

namespace cortiq::serve {
namespace {

Status wrong(const char* name, const std::string& what) {
  return invalid(std::string("`") + name + "` has to be " + what);
}

std::string plain(double value) {
  return dump(
      Json(value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value)) : Json(value)));
}

/// Levels that a text nests, strings aside: the parser's result is walked by recursion.
int depth(std::string_view text) {
  int level = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      i += text[i] == '\\' ? 1 : 0;
      quoted = i >= text.size() || text[i] != '"';
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == '[' || text[i] == '{') {
      deepest = std::max(deepest, ++level);
    } else if (text[i] == ']' || text[i] == '}') {
      --level;
    }
  }
  return deepest;
}

} // namespace

StatusOr<Json> parse_body(std::string_view body) {
  if (depth(body) > kMaxDepth)
    return invalid("the request nests more than " + std::to_string(kMaxDepth) + " levels");
  Json out = Json::parse(body, nullptr, false);
  if (!out.is_object())
    return invalid(out.is_discarded() ? "the request is not JSON" : "the request is not a JSON object");
  return out;
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

StatusOr<bool> Fields::flag(const char* name, bool fallback) const {
  const Json* value = find(name);
  if (!value)
    return fallback;
  if (!value->is_boolean())
    return wrong(name, "true or false");
  return value->get<bool>();
}

StatusOr<std::optional<double>> Fields::number(const char* name, double least, double most) const {
  const Json* value = find(name);
  if (!value)
    return std::optional<double>();
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most))
    return wrong(name, "a number from " + plain(least) + " to " + plain(most));
  return std::optional(number);
}

StatusOr<std::optional<uint64_t>> Fields::whole(const char* name, uint64_t most) const {
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<double> number, this->number(name, 0, static_cast<double>(most)));
  if (number && *number != std::floor(*number))
    return wrong(name, "a whole number");
  return number ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

StatusOr<std::optional<std::string>> Fields::text(const char* name) const {
  const Json* value = find(name);
  if (!value)
    return std::optional<std::string>();
  if (!value->is_string())
    return wrong(name, "a string");
  return std::optional(value->get<std::string>());
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace cortiq::serve
