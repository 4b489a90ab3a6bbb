#pragma once

// Values of a request's JSON, each checked where it is taken. A field that is null is a field that is absent.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "formats/status.h"

namespace cortiq::serve {

using Json = nlohmann::ordered_json;

/// Levels of arrays and objects that a request may nest.
inline constexpr int kMaxDepth = 64;

/// Parses a request's body: a JSON object of at most kMaxDepth levels.
StatusOr<Json> parse_body(std::string_view body);

class Fields {
public:
  /// `object` must live as long as this.
  explicit Fields(const Json& object) : object_(object) {}

  /// Null when absent.
  const Json* find(const char* name) const;
  StatusOr<bool> flag(const char* name, bool fallback) const;
  StatusOr<std::optional<double>> number(const char* name, double least, double most) const;
  /// Takes 3 and 3.0.
  StatusOr<std::optional<uint64_t>> whole(const char* name, uint64_t most) const;
  StatusOr<std::optional<std::string>> text(const char* name) const;

private:
  const Json& object_;
};

/// JSON text of any string, ill-formed UTF-8 replaced.
std::string dump(const Json& json);

} // namespace cortiq::serve
