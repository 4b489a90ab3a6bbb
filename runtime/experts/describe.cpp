#include <cstdio>

#include "runtime/experts/expert_store.h"

namespace cortiq::runtime {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}
double each(double sum, uint64_t count) {
  return count != 0 ? sum / static_cast<double>(count) : 0;
}

} // namespace

std::string describe(const ExpertStore& store) {
  const ExpertStatistics s = store.statistics();
  char line[240];
  std::snprintf(line, sizeof(line),
                "experts: room for %.1f of %.1f MB, read with %s; %.1f%% of %llu uses in memory, "
                "%.1f%% read ahead by the next router\n",
                static_cast<double>(store.limit_bytes()) * 1e-6, static_cast<double>(store.most_bytes()) * 1e-6,
                store.reader_name(), share(s.hits, s.uses), static_cast<unsigned long long>(s.uses),
                share(s.prefetch_hits, s.uses));
  std::string lines = line;
  std::snprintf(line, sizeof(line),
                "experts: %llu reads, %.1f MB, %.2f MB a token; workers waited %.1f ms, %.2f ms a token\n",
                static_cast<unsigned long long>(s.reads), static_cast<double>(s.bytes_read) * 1e-6,
                each(static_cast<double>(s.bytes_read) * 1e-6, s.tokens), static_cast<double>(s.waited_ns) * 1e-6,
                each(static_cast<double>(s.waited_ns) * 1e-6, s.tokens));
  return lines + line;
}

} // namespace cortiq::runtime
