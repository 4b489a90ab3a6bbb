#include "tools/cortiq-convert/gguf_keys.h"

#include <cmath>

namespace cortiq::convert {

StatusOr<uint64_t> GgufKeys::checked(std::string_view suffix, uint64_t value) const {
  if (value == 0 || value > kMostSize)
    return invalid("key " + name(suffix) + " is " + std::to_string(value) + ", which no model can have");
  return value;
}

StatusOr<uint64_t> GgufKeys::size(std::string_view suffix) const {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64(name(suffix)));
  return checked(suffix, value);
}

StatusOr<uint64_t> GgufKeys::size_or(std::string_view suffix, uint64_t otherwise) const {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64_or(name(suffix), otherwise));
  return checked(suffix, value);
}

StatusOr<uint64_t> GgufKeys::count_or(std::string_view suffix, uint64_t otherwise) const {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64_or(name(suffix), otherwise));
  return value == 0 ? StatusOr<uint64_t>(value) : checked(suffix, value);
}

StatusOr<std::vector<uint64_t>> GgufKeys::counts(std::string_view suffix, uint64_t layers) const {
  CORTIQ_ASSIGN_OR_RETURN(std::vector<uint64_t> values, file_.get_per_layer_u64(name(suffix), layers));
  for (const uint64_t value : values)
    if (value != 0)
      CORTIQ_RETURN_IF_ERROR(checked(suffix, value).status());
  return values;
}

StatusOr<double> GgufKeys::number(std::string_view suffix, double otherwise) const {
  CORTIQ_ASSIGN_OR_RETURN(const double value, file_.get_f64_or(name(suffix), otherwise));
  if (!std::isfinite(value))
    return invalid("key " + name(suffix) + " is not a finite number");
  return value;
}

Status GgufKeys::refuse(std::string_view suffix, const std::string& value, const std::string& why) const {
  return unsupported("key " + name(suffix) + " is " + value + ", " + why);
}

} // namespace cortiq::convert
