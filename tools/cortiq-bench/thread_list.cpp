#include "tools/cortiq-bench/thread_list.h"

#include <charconv>

#include "formats/quote.h"
#include "runtime/cpu/limits.h"

namespace cortiq::bench {
namespace {

constexpr unsigned kMost = 1024;
constexpr size_t kMostCounts = 64;

} // namespace

StatusOr<std::vector<unsigned>> parse_counts(const char* option, const std::string& text) {
  std::vector<unsigned> out;
  for (const char *at = text.data(), *end = at + text.size();;) {
    unsigned count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || count == 0 || count > kMost || (next != end && *next != ',') ||
        out.size() == kMostCounts)
      return invalid(std::string(option) + " takes a number from 1 to " + std::to_string(kMost) +
                     ", or several with commas between, not " + formats::quote(text));
    out.push_back(count);
    if (next == end)
      return out;
    at = next + 1;
  }
}

StatusOr<std::vector<unsigned>> parse_threads(const std::string& text) {
  if (text.empty() || text == "0")
    return std::vector<unsigned>{runtime::default_threads(runtime::read_cpu_limits())};
  return parse_counts("--threads", text);
}

} // namespace cortiq::bench
