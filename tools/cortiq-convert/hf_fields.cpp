#include "tools/cortiq-convert/hf_fields.h"

#include <cmath>

namespace cortiq::convert {

using formats::Json;

const Json* HfFields::find(const char* name) const {
  const auto found = object_.is_object() ? object_.find(name) : object_.end();
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

StatusOr<uint64_t> HfFields::size(const char* name, std::optional<uint64_t> otherwise) const {
  const Json* value = find(name);
  if (!value && otherwise)
    return *otherwise;
  if (!value || !value->is_number_unsigned() || *value == 0 || value->get<uint64_t>() > kMostSize)
    return invalid(std::string(name) + (value ? " is no size that a model can have" : " is missing"));
  return value->get<uint64_t>();
}

StatusOr<uint64_t> HfFields::count(const char* name, uint64_t otherwise) const {
  const Json* value = find(name);
  if (value && *value == 0)
    return uint64_t{0};
  return value ? size(name) : StatusOr<uint64_t>(otherwise);
}

StatusOr<double> HfFields::number(const char* name, std::optional<double> otherwise) const {
  const Json* value = find(name);
  if (!value && otherwise)
    return *otherwise;
  if (!value || !value->is_number() || !std::isfinite(value->get<double>()))
    return invalid(std::string(name) + (value ? " is no finite number" : " is missing"));
  return value->get<double>();
}

StatusOr<bool> HfFields::flag(const char* name, bool otherwise) const {
  const Json* value = find(name);
  if (value && !value->is_boolean())
    return invalid(std::string(name) + " is neither true nor false");
  return value ? value->get<bool>() : otherwise;
}

StatusOr<std::string> HfFields::text(const char* name, const std::string& otherwise) const {
  const Json* value = find(name);
  if (value && !value->is_string())
    return invalid(std::string(name) + " is no text");
  return value ? value->get<std::string>() : otherwise;
}

StatusOr<std::vector<double>> HfFields::numbers(const char* name, uint64_t count) const {
  const Json* list = find(name);
  if (!list || !list->is_array() || list->size() != count)
    return invalid(std::string(name) + " is not a list of " + std::to_string(count) + " numbers");
  std::vector<double> out;
  for (const Json& value : *list) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() == 0)
      return invalid(std::string(name) + " has an entry that is zero or no finite number");
    out.push_back(value.get<double>());
  }
  return out;
}

} // namespace cortiq::convert
