#pragma once

// Fields of config.json, checked for what a model can have. Messages name the field.

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/status.h"
#include "tools/cortiq-convert/layer_sizes.h"

namespace cortiq::convert {

class HfFields {
public:
  explicit HfFields(const formats::Json& object) : object_(object) {}

  /// The field; null where it is absent or null.
  const formats::Json* find(const char* name) const;
  bool has(const char* name) const { return find(name) != nullptr; }

  /// At least 1, and 0 or more.
  StatusOr<uint64_t> size(const char* name, std::optional<uint64_t> otherwise = std::nullopt) const;
  StatusOr<uint64_t> count(const char* name, uint64_t otherwise) const;
  StatusOr<double> number(const char* name, std::optional<double> otherwise = std::nullopt) const;
  StatusOr<bool> flag(const char* name, bool otherwise) const;
  StatusOr<std::string> text(const char* name, const std::string& otherwise) const;
  StatusOr<std::vector<double>> numbers(const char* name, uint64_t count) const;

private:
  const formats::Json& object_;
};

} // namespace cortiq::convert
