#include "runtime/cli/whole_number.h"

#include <charconv>

#include "formats/quote.h"

namespace cortiq::runtime::cli {

std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most) {
  return [=](const std::string& text) -> std::string {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && read == end && value >= least && value <= most)
      return "";
    return "takes a whole number from " + std::to_string(least) + " to " + std::to_string(most) + ", not " +
           formats::quote(text);
  };
}

} // namespace cortiq::runtime::cli
