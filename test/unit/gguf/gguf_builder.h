#pragma once

// Builds GGUF files byte by byte for tests.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_value.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {

class GgufBuilder {
public:
  template <class T>
  GgufBuilder& number(std::string_view key, GgufType type, T value) {
    head(key, type);
    put(entries_, value);
    return *this;
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    head(key, GgufType::kString);
    put_string(entries_, value);
    return *this;
  }
  template <class T>
  GgufBuilder& array(std::string_view key, GgufType element, const std::vector<T>& values) {
    head(key, GgufType::kArray);
    put(entries_, static_cast<uint32_t>(element));
    put(entries_, uint64_t{values.size()});
    for (const T& value : values)
      put(entries_, value);
    return *this;
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    head(key, GgufType::kArray);
    put(entries_, static_cast<uint32_t>(GgufType::kString));
    put(entries_, uint64_t{values.size()});
    for (const std::string& value : values)
      put_string(entries_, value);
    return *this;
  }
  /// A tensor of `bytes` bytes; dims innermost first.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, size_t bytes) {
    ++tensor_count_;
    put_string(infos_, name);
    put(infos_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims)
      put(infos_, dim);
    put(infos_, type);
    put(infos_, uint64_t{data_.size()});
    data_.resize((data_.size() + bytes + 31) / 32 * 32, 0x11);
    return *this;
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out = {'G', 'G', 'U', 'F'};
    put(out, uint32_t{3});
    put(out, tensor_count_);
    put(out, entry_count_);
    out.insert(out.end(), entries_.begin(), entries_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    out.resize((out.size() + 31) / 32 * 32);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }
  void write(const std::string& path) const { test::write_bytes(path, bytes()); }

private:
  template <class T>
  static void put(std::vector<uint8_t>& out, const T& value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), raw, raw + sizeof value);
  }
  static void put_string(std::vector<uint8_t>& out, std::string_view text) {
    put(out, uint64_t{text.size()});
    out.insert(out.end(), text.begin(), text.end());
  }
  void head(std::string_view key, GgufType type) {
    ++entry_count_;
    put_string(entries_, key);
    put(entries_, static_cast<uint32_t>(type));
  }

  uint64_t tensor_count_ = 0;
  uint64_t entry_count_ = 0;
  std::vector<uint8_t> entries_, infos_, data_;
};

} // namespace cortiq::formats
