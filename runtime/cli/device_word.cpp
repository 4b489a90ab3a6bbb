#include "runtime/cli/device_word.h"

#include <charconv>

namespace cortiq::runtime::cli {
namespace {

constexpr uint32_t kMostDevices = 255;

} // namespace

std::vector<uint32_t> parse_devices(const std::string& word) {
  std::vector<uint32_t> out;
  const char* at = word.data();
  const char* const end = at + word.size();
  while (true) {
    uint32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number > kMostDevices)
      return {};
    out.push_back(number);
    if (next == end)
      return out;
    if (*next != ',')
      return {};
    at = next + 1;
  }
}

std::string check_device(const std::string& word) {
  if (word == "auto" || word == "none" || word == "list" || !parse_devices(word).empty())
    return {};
  return "'" + word + "' is not auto, none, list, or numbers of GPUs with commas between them";
}

} // namespace cortiq::runtime::cli
