#include "runtime/cli/memory_size.h"

#include <charconv>

#include "formats/quote.h"

namespace cortiq::runtime::cli {
namespace {

constexpr std::string_view kUnits = "KMGT";
constexpr uint64_t kMost = uint64_t{1} << 62;

} // namespace

std::optional<uint64_t> parse_memory_size(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value == 0 || end - read > 1)
    return std::nullopt;
  uint64_t unit = 1;
  if (read != end) {
    const size_t power = kUnits.find(*read);
    if (power == std::string_view::npos)
      return std::nullopt;
    unit = uint64_t{1} << (10 * (power + 1));
  }
  return value <= kMost / unit ? std::optional(value * unit) : std::nullopt;
}

std::function<std::string(const std::string&)> memory_size() {
  return [](const std::string& text) -> std::string {
    if (parse_memory_size(text))
      return "";
    return "takes a size as in 8G, 512M, 65536K or 1000000 (bytes), not " + formats::quote(text);
  };
}

} // namespace cortiq::runtime::cli
