#pragma once

// Carrying values over the C boundary of text_abi.h.

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"
#include "runtime/text/text_abi.h"

namespace cortiq::runtime::text {

inline CortiqTextView abi_view(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline CortiqTextView abi_view(std::span<const uint8_t> bytes) {
  return {bytes.data(), bytes.size()};
}

/// Bytes that the library handed out; gives them back.
class AbiBytes {
public:
  AbiBytes() = default;
  AbiBytes(const AbiBytes&) = delete;
  AbiBytes& operator=(const AbiBytes&) = delete;
  ~AbiBytes() { cortiq_text_release(bytes_); }

  CortiqTextBytes* out() { return &bytes_; }
  std::string text() const { return std::string(reinterpret_cast<const char*>(bytes_.data), bytes_.length); }
  std::vector<uint8_t> bytes() const { return {bytes_.data, bytes_.data + bytes_.length}; }
  std::vector<uint32_t> ids() const {
    std::vector<uint32_t> ids(bytes_.length / sizeof(uint32_t));
    if (!ids.empty())
      std::memcpy(ids.data(), bytes_.data, ids.size() * sizeof(uint32_t));
    return ids;
  }

private:
  CortiqTextBytes bytes_ = {nullptr, 0};
};

/// The Status of a call that returned `result` and left its sentence in `error`.
inline Status abi_status(int32_t result, const AbiBytes& error) {
  return result ? Status() : invalid(error.text());
}

} // namespace cortiq::runtime::text
