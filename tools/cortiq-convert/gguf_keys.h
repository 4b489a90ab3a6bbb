#pragma once

// Keys of one architecture of a GGUF file, checked for what a model can have. Messages name the key.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "tools/cortiq-convert/layer_sizes.h"

namespace cortiq::convert {

class GgufKeys {
public:
  GgufKeys(const formats::GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  const formats::GgufFile& file() const { return file_; }
  std::string name(std::string_view suffix) const { return prefix_ + "." + std::string(suffix); }
  bool has(std::string_view suffix) const { return file_.has(name(suffix)); }

  /// At least 1.
  StatusOr<uint64_t> size(std::string_view suffix) const;
  StatusOr<uint64_t> size_or(std::string_view suffix, uint64_t otherwise) const;
  StatusOr<uint64_t> checked(std::string_view suffix, uint64_t value) const;
  /// 0 or more.
  StatusOr<uint64_t> count_or(std::string_view suffix, uint64_t otherwise) const;
  StatusOr<std::vector<uint64_t>> counts(std::string_view suffix, uint64_t layers) const;
  StatusOr<double> number(std::string_view suffix, double otherwise) const;
  /// A failure that says what the key is and why that cannot be.
  Status refuse(std::string_view suffix, const std::string& value, const std::string& why) const;

private:
  const formats::GgufFile& file_;
  std::string prefix_;
};

} // namespace cortiq::convert
