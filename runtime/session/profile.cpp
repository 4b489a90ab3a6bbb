#include "runtime/session/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

#include "runtime/executor/profiler.h"

namespace cortiq::runtime {
namespace {

constexpr double kNano = 1e-9;

std::string shape_of(const Profile::Row& row) {
  return row.name + " " + std::to_string(row.rows) + "x" + std::to_string(row.cols);
}

/// Slowest first; events follow their rows.
void sort_rows(Profile& profile) {
  std::vector<uint32_t> order(profile.rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Profile::Row &x = profile.rows[a], &y = profile.rows[b];
    return x.seconds != y.seconds ? x.seconds > y.seconds : shape_of(x) < shape_of(y);
  });
  std::vector<Profile::Row> rows;
  std::vector<uint32_t> place(order.size());
  for (const uint32_t from : order) {
    place[from] = static_cast<uint32_t>(rows.size());
    rows.push_back(std::move(profile.rows[from]));
  }
  profile.rows = std::move(rows);
  for (Profile::Event& event : profile.events)
    event.row = place[event.row];
}

} // namespace

Profile make_profile(const Profiler* profiler, unsigned threads) {
  Profile out;
  out.threads = threads;
  if (!profiler)
    return out;
  std::map<std::string, uint32_t> numbers;
  std::map<const Call*, uint32_t> row_of;
  for (const Profiler::CallTimes& times : profiler->calls()) {
    if (times.steps == 0)
      continue;
    const CallInfo info = times.call->info();
    Profile::Row row{info.name, info.rows, info.cols};
    const auto [place, is_new] = numbers.try_emplace(shape_of(row), static_cast<uint32_t>(out.rows.size()));
    if (is_new)
      out.rows.push_back(std::move(row));
    Profile::Row& sum = out.rows[row_of[times.call] = place->second];
    sum.calls += times.steps;
    sum.seconds += static_cast<double>(times.wall) * kNano;
    sum.busy_seconds += static_cast<double>(times.busy) * kNano;
    sum.bytes += static_cast<double>(times.work.bytes);
    sum.operations += static_cast<double>(times.work.operations);
    out.bytes += static_cast<double>(times.work.bytes);
  }
  const std::vector<Profiler::Event> events = profiler->events();
  uint64_t origin = UINT64_MAX;
  for (const Profiler::Event& event : events)
    origin = std::min(origin, event.start);
  for (const Profiler::Event& event : events)
    out.events.push_back({row_of[event.call], event.worker, static_cast<double>(event.start - origin) * kNano,
                          static_cast<double>(event.end - event.start) * kNano});
  sort_rows(out);

  const Profiler::Totals totals = profiler->totals();
  const double parallel = static_cast<double>(totals.busy_parallel) / threads;
  const double serial = static_cast<double>(totals.busy_serial) / threads;
  out.steps = totals.steps;
  out.step = static_cast<double>(totals.wall) * kNano;
  out.work = (parallel + serial) * kNano;
  out.alone = (static_cast<double>(totals.serial) - serial) * kNano;
  out.setup = static_cast<double>(totals.setup) * kNano;
  out.waiting = out.step - out.work - out.alone - out.setup;
  return out;
}

std::vector<std::string> describe(const Profile& profile, double machine_gbps) {
  std::vector<std::string> lines;
  char line[200];
  for (const Profile::Row& row : profile.rows) {
    std::snprintf(line, sizeof(line), "  %llu calls  %.1f MB  %.3f ms  %.2f GB/s",
                  static_cast<unsigned long long>(row.calls), row.bytes * 1e-6, row.seconds * 1e3, row.gbps());
    std::string text = shape_of(row) + line;
    if (machine_gbps > 0 && row.bytes != 0) {
      std::snprintf(line, sizeof(line), "  %.0f%% of %.1f", 100 * row.gbps() / machine_gbps, machine_gbps);
      text += line;
    }
    lines.push_back(std::move(text));
  }
  if (profile.steps != 0) {
    const double each = 1e6 / static_cast<double>(profile.steps);
    std::snprintf(line, sizeof(line),
                  "%llu steps on %u threads, %.1f us each: %.1f at work, %.1f waiting, %.1f for operations of one "
                  "thread, %.1f before the first",
                  static_cast<unsigned long long>(profile.steps), profile.threads, profile.step * each,
                  profile.work * each, profile.waiting * each, profile.alone * each, profile.setup * each);
    lines.emplace_back(line);
  }
  return lines;
}

} // namespace cortiq::runtime
