#include "formats/quote.h"

#include <cstdio>

namespace cortiq::formats {
namespace {

constexpr size_t kLongest = 200;

/// Length of the well-formed UTF-8 sequence at the start of `s`, 0 if there is none. Table 3-7 of the Unicode standard.
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : uint8_t{0}; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t a = byte(0);
  const uint8_t b = byte(1);
  if (a < 0x80)
    return s.empty() ? 0 : 1;
  if (a >= 0xC2 && a <= 0xDF)
    return tail(1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    const uint8_t low = a == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = a == 0xED ? 0x9F : 0xBF;
    return b >= low && b <= high && tail(2) ? 3 : 0;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    const uint8_t low = a == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = a == 0xF4 ? 0x8F : 0xBF;
    return b >= low && b <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

} // namespace

std::string quote(std::string_view text) {
  return "'" + printable(text) + "'";
}

std::string printable(std::string_view text) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (text.size() - rest.size() >= kLongest) {
      out += "…";
      break;
    }
    const size_t n = sequence_length(rest);
    const auto first = static_cast<uint8_t>(rest[0]);
    // C1 controls (U+0080..U+009F) steer terminals as well.
    const bool control =
        first < 0x20 || first == 0x7F || (n == 2 && first == 0xC2 && static_cast<uint8_t>(rest[1]) < 0xA0);
    if (n == 0 || control) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", first);
      out += escape;
      rest.remove_prefix(1);
    } else {
      out += rest.substr(0, n);
      rest.remove_prefix(n);
    }
  }
  return out;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t n = sequence_length(bytes);
    if (n == 0)
      return false;
    bytes.remove_prefix(n);
  }
  return true;
}

std::string hex64(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string shape_text(std::span<const uint64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

} // namespace cortiq::formats
