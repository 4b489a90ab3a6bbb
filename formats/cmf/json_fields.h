#pragma once

// Typed reading of JSON objects whose fields have defaults. Private to the CMF reader.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/quote.h"
#include "formats/status.h"

namespace cortiq::formats {

/// Reads fields of one object into variables. The first failure is kept and later reads do nothing, so that a list of
/// reads needs one check at its end. Messages call the object `where`.
class JsonFields {
public:
  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object())
      status_ = invalid(where_ + " is not a JSON object");
  }

  const Status& status() const { return status_; }

  /// The field must be there.
  template <class T>
  void required(const char* key, T& out) {
    if (!status_.ok())
      return;
    if (const auto it = object_.find(key); it != object_.end())
      take(key, *it, out);
    else
      status_ = invalid(name(key) + " is missing");
  }

  /// Without the field, `out` keeps its default.
  template <class T>
  void with_default(const char* key, T& out) {
    if (!status_.ok())
      return;
    if (const auto it = object_.find(key); it != object_.end())
      take(key, *it, out);
  }

  /// Absent and null are the same: `out` stays empty.
  template <class T>
  void optional(const char* key, std::optional<T>& out) {
    if (const Json* value = present(key))
      take(key, *value, out.emplace());
  }

  /// The value of `key` unless it is absent or null; null after a failure.
  const Json* present(const char* key) const {
    if (!status_.ok())
      return nullptr;
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  std::string name(const char* key) const { return where_ + "." + key; }
  void fail(Status status) {
    if (status_.ok())
      status_ = std::move(status);
  }

private:
  template <class T>
  void take(const char* key, const Json& value, T& out) {
    if (const char* wanted = convert(value, out))
      status_ = invalid(name(key) + " is " + shown(value) + ", expected " + wanted);
  }

  static std::string shown(const Json& value) {
    if (value.is_number() || value.is_boolean() || value.is_null())
      return value.dump();
    if (value.is_string())
      return quote(value.get_ref<const std::string&>());
    return value.is_array() ? "an array" : "an object";
  }

  // Each returns null, or what it would have accepted.
  static const char* convert(const Json& value, uint64_t& out) {
    // Parsed numbers are unsigned unless negative; those set by code are signed.
    const bool negative = value.is_number_integer() && !value.is_number_unsigned() && value.get<int64_t>() < 0;
    if (!value.is_number_integer() || negative)
      return "an unsigned integer";
    out = value.get<uint64_t>();
    return nullptr;
  }
  static const char* convert(const Json& value, uint32_t& out) {
    // Nothing in a model counts higher; the bound keeps products of two such numbers inside 64 bits.
    constexpr uint64_t kLargest = uint64_t{1} << 31;
    uint64_t wide = 0;
    if (convert(value, wide) != nullptr || wide > kLargest)
      return "an integer from 0 to 2147483648";
    out = static_cast<uint32_t>(wide);
    return nullptr;
  }
  static const char* convert(const Json& value, double& out) {
    if (!value.is_number())
      return "a number";
    out = value.get<double>();
    return nullptr;
  }
  static const char* convert(const Json& value, float& out) {
    if (!value.is_number() || std::fabs(value.get<double>()) > std::numeric_limits<float>::max())
      return "a number in the range of f32";
    out = static_cast<float>(value.get<double>());
    return nullptr;
  }
  static const char* convert(const Json& value, bool& out) {
    if (!value.is_boolean())
      return "true or false";
    out = value.get<bool>();
    return nullptr;
  }
  static const char* convert(const Json& value, std::string& out) {
    if (!value.is_string())
      return "a string";
    out = value.get_ref<const std::string&>();
    return nullptr;
  }
  template <class T>
  static const char* convert(const Json& value, std::vector<T>& out) {
    if (!value.is_array())
      return "an array";
    out.clear();
    out.reserve(value.size());
    for (const Json& element : value) {
      T item{};
      if (convert(element, item) != nullptr)
        return "an array whose elements all have the right type and range";
      out.push_back(std::move(item));
    }
    return nullptr;
  }

  const Json& object_;
  std::string where_;
  Status status_;
};

} // namespace cortiq::formats
