#include "tools/cortiq-bench/thread_list.h"

#include <charconv>

#include "formats/quote.h"
#include "runtime/cpu/limits.h"

namespace cortiq::bench {
namespace {

constexpr unsigned kMostThreads = 1024;
constexpr size_t kMostCounts = 64;

} // namespace

StatusOr<std::vector<unsigned>> parse_threads(const std::string& text) {
  if (text.empty() || text == "0")
    return std::vector<unsigned>{runtime::default_threads(runtime::read_cpu_limits())};
  std::vector<unsigned> out;
  for (const char *at = text.data(), *end = at + text.size();;) {
    unsigned count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || count == 0 || count > kMostThreads || (next != end && *next != ',') ||
        out.size() == kMostCounts)
      return invalid("--threads takes a number from 0 to " + std::to_string(kMostThreads) +
                     ", or several from 1 with commas between, not " + formats::quote(text));
    out.push_back(count);
    if (next == end)
      return out;
    at = next + 1;
  }
}

} // namespace cortiq::bench
