// A profile in a few lines: what --stats prints.

#include <algorithm>
#include <cstdio>
#include <map>

#include "runtime/session/profile.h"

namespace cortiq::runtime {
namespace {

/// "products, q4_k" for a kernel of matrix products, whose name says its codec (docs/kernel-names.md); else the name.
std::string kind_of(const std::string& name) {
  if (!name.starts_with("gem"))
    return name;
  size_t begin = 0;
  for (int word = 0; word < 3; ++word) // operation, result, activations
    begin = name.find('_', begin) + 1;
  for (const char* layout : {"_r16_k", "_verbatim_k"})
    if (const size_t end = name.find(layout, begin); end != std::string::npos)
      return "products, " + name.substr(begin, end - begin);
  return name;
}

std::string line_of(const std::string& name, double seconds, double step) {
  char text[96];
  std::snprintf(text, sizeof(text), "  %-24s %10.1f ms %5.1f %%", name.c_str(), seconds * 1e3,
                step > 0 ? 100 * seconds / step : 0);
  return text;
}

} // namespace

std::vector<Profile::Row> sum_kinds(const Profile& profile) {
  std::map<std::string, Profile::Row> sums;
  for (const Profile::Row& row : profile.rows) {
    Profile::Row& sum = sums[kind_of(row.name)];
    sum.calls += row.calls;
    sum.seconds += row.seconds;
    sum.busy_seconds += row.busy_seconds;
    sum.bytes += row.bytes;
    sum.operations += row.operations;
  }
  std::vector<Profile::Row> out;
  for (auto& [name, sum] : sums) {
    sum.name = name;
    out.push_back(std::move(sum));
  }
  // Those of equal time stay in the order of their names.
  std::ranges::sort(out, [](const Profile::Row& a, const Profile::Row& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return out;
}

std::vector<std::string> summarize(const Profile& profile) {
  if (profile.steps == 0)
    return {};
  char text[96];
  std::snprintf(text, sizeof(text),
                "%llu steps on %u threads, %.1f ms:", static_cast<unsigned long long>(profile.steps), profile.threads,
                profile.step * 1e3);
  std::vector<std::string> lines = {text};
  for (const Profile::Row& kind : sum_kinds(profile)) {
    lines.push_back(line_of(kind.name, kind.seconds, profile.step));
    if (kind.bytes == 0)
      continue;
    std::snprintf(text, sizeof(text), " %10.1f MB %8.2f GB/s", kind.bytes * 1e-6, kind.gbps());
    lines.back() += text;
  }
  lines.push_back(line_of("of it waiting", profile.overhead(), profile.step));
  return lines;
}

} // namespace cortiq::runtime
