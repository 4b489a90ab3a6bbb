// Typed access to a GGUF file's metadata.

#include <limits>
#include <type_traits>

#include "formats/gguf/gguf_file.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

template <class T>
constexpr const char* wanted_word() {
  if constexpr (std::is_same_v<T, uint64_t>)
    return "an unsigned integer";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "an integer";
  else if constexpr (std::is_same_v<T, double>)
    return "a float";
  else if constexpr (std::is_same_v<T, bool>)
    return "a boolean";
  else
    return "a string";
}

} // namespace

Status GgufFile::wrong_type(const GgufEntry& entry, const char* wanted) const {
  std::string found(gguf_type_name(entry.type));
  if (const auto* array = std::get_if<GgufArray>(&entry.value))
    found += " of " + std::string(gguf_type_name(array->element));
  return invalid(quote(path()) + ": key " + std::string(entry.key) + " is of type " + found + ", expected " + wanted);
}

template <class T>
Status GgufFile::convert(const GgufEntry& entry, const GgufScalar& value, T& out) const {
  if (const T* same = std::get_if<T>(&value)) {
    out = *same;
    return {};
  }
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (const int64_t* number = std::get_if<int64_t>(&value)) {
      if (*number < 0)
        return invalid(quote(path()) + ": key " + std::string(entry.key) + " is " + std::to_string(*number) +
                       ", expected an unsigned integer");
      out = static_cast<uint64_t>(*number);
      return {};
    }
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    if (const uint64_t* number = std::get_if<uint64_t>(&value)) {
      if (*number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return invalid(quote(path()) + ": key " + std::string(entry.key) + " is " + std::to_string(*number) +
                       ", which does not fit a signed integer");
      out = static_cast<int64_t>(*number);
      return {};
    }
  }
  return wrong_type(entry, wanted_word<T>());
}

template <class T>
StatusOr<T> GgufFile::get(std::string_view key) const {
  const GgufEntry* found = entry(key);
  if (found == nullptr)
    return invalid(quote(path()) + ": the required key " + std::string(key) + " is missing");
  const auto* scalar = std::get_if<GgufScalar>(&found->value);
  if (scalar == nullptr)
    return wrong_type(*found, wanted_word<T>());
  T out{};
  CORTIQ_RETURN_IF_ERROR(convert(*found, *scalar, out));
  return out;
}

template <class T>
StatusOr<T> GgufFile::get_or(std::string_view key, T otherwise) const {
  return has(key) ? get<T>(key) : StatusOr<T>(otherwise);
}

template <class T>
StatusOr<std::vector<T>> GgufFile::get_array(std::string_view key) const {
  const GgufEntry* found = entry(key);
  if (found == nullptr)
    return invalid(quote(path()) + ": the required key " + std::string(key) + " is missing");
  const auto* array = std::get_if<GgufArray>(&found->value);
  if (array == nullptr)
    return wrong_type(*found, "an array");
  std::vector<T> out;
  out.reserve(array->size);
  Status status;
  array->for_each([&](const GgufScalar& value) {
    T item{};
    status = convert(*found, value, item);
    out.push_back(item);
    return status.ok();
  });
  CORTIQ_RETURN_IF_ERROR(status);
  return out;
}

template <class T>
StatusOr<std::vector<T>> GgufFile::get_per_layer(std::string_view key, uint64_t layers) const {
  const GgufEntry* found = entry(key);
  if (found == nullptr || !std::holds_alternative<GgufArray>(found->value)) {
    CORTIQ_ASSIGN_OR_RETURN(const T value, get<T>(key));
    return std::vector<T>(layers, value);
  }
  CORTIQ_ASSIGN_OR_RETURN(std::vector<T> out, get_array<T>(key));
  if (out.size() < layers)
    return invalid(quote(path()) + ": key " + std::string(key) + " has " + std::to_string(out.size()) +
                   " entries, but the model has " + std::to_string(layers) + " blocks");
  out.resize(layers);
  return out;
}

StatusOr<uint64_t> GgufFile::get_u64(std::string_view key) const {
  return get<uint64_t>(key);
}
StatusOr<int64_t> GgufFile::get_i64(std::string_view key) const {
  return get<int64_t>(key);
}
StatusOr<double> GgufFile::get_f64(std::string_view key) const {
  return get<double>(key);
}
StatusOr<bool> GgufFile::get_bool(std::string_view key) const {
  return get<bool>(key);
}
StatusOr<std::string_view> GgufFile::get_string(std::string_view key) const {
  return get<std::string_view>(key);
}

StatusOr<uint64_t> GgufFile::get_u64_or(std::string_view key, uint64_t otherwise) const {
  return get_or<uint64_t>(key, otherwise);
}
StatusOr<int64_t> GgufFile::get_i64_or(std::string_view key, int64_t otherwise) const {
  return get_or<int64_t>(key, otherwise);
}
StatusOr<double> GgufFile::get_f64_or(std::string_view key, double otherwise) const {
  return get_or<double>(key, otherwise);
}
StatusOr<bool> GgufFile::get_bool_or(std::string_view key, bool otherwise) const {
  return get_or<bool>(key, otherwise);
}
StatusOr<std::string_view> GgufFile::get_string_or(std::string_view key, std::string_view otherwise) const {
  return get_or<std::string_view>(key, otherwise);
}

StatusOr<std::vector<uint64_t>> GgufFile::get_u64_array(std::string_view key) const {
  return get_array<uint64_t>(key);
}
StatusOr<std::vector<int64_t>> GgufFile::get_i64_array(std::string_view key) const {
  return get_array<int64_t>(key);
}
StatusOr<std::vector<double>> GgufFile::get_f64_array(std::string_view key) const {
  return get_array<double>(key);
}
StatusOr<std::vector<bool>> GgufFile::get_bool_array(std::string_view key) const {
  return get_array<bool>(key);
}
StatusOr<std::vector<std::string_view>> GgufFile::get_string_array(std::string_view key) const {
  return get_array<std::string_view>(key);
}

StatusOr<std::vector<uint64_t>> GgufFile::get_per_layer_u64(std::string_view key, uint64_t layers) const {
  return get_per_layer<uint64_t>(key, layers);
}
StatusOr<std::vector<double>> GgufFile::get_per_layer_f64(std::string_view key, uint64_t layers) const {
  return get_per_layer<double>(key, layers);
}
StatusOr<std::vector<bool>> GgufFile::get_per_layer_bool(std::string_view key, uint64_t layers) const {
  return get_per_layer<bool>(key, layers);
}

} // namespace cortiq::formats
