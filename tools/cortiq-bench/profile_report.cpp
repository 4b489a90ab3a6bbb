#include "tools/cortiq-bench/profile_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/atomic_file.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Profile;

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string shape_of(const Profile::Row& row) {
  return std::to_string(row.rows) + "x" + std::to_string(row.cols);
}

Json row_json(const Profile::Row& row, const PhaseProfile& phase, const Ceilings& ceilings) {
  const auto steps = static_cast<double>(phase.profile.steps);
  Json out = {{"op", row.name},
              {"rows", row.rows},
              {"cols", row.cols},
              {"calls", row.calls},
              {"us_a_step", row.seconds * 1e6 / steps},
              {"busy_us_a_step", row.busy_seconds * 1e6 / steps},
              {"share", share(row.seconds / steps, phase.step_seconds())},
              {"bytes_a_step", row.bytes / steps}};
  if (const double floor = floor_seconds(row, ceilings); floor > 0)
    out["of_floor"] = share(floor, row.seconds);
  if (row.bytes > 0) {
    out["gbps"] = row.gbps();
    out["of_bandwidth"] = share(row.gbps(), ceilings.memory.best);
  }
  if (row.operations > 0) {
    out["operations_a_step"] = row.operations / steps;
    out["tops"] = row.tops();
    if (const double peak = ceilings.peak_of(row.name); peak > 0)
      out["of_peak"] = row.tops() / peak;
  }
  return out;
}

std::string number(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void print_line(const std::string& name, const std::string& shape, double us, double of_step, const std::string& rest) {
  std::printf("  %-58s %13s %10.1f %6.1f %s\n", name.c_str(), shape.c_str(), us, of_step * 100, rest.c_str());
}

} // namespace

double PhaseProfile::step_seconds() const {
  return profile.steps != 0 ? (profile.step + outside) / static_cast<double>(profile.steps) : 0;
}

double PhaseProfile::floor_seconds(const Ceilings& ceilings) const {
  double seconds = 0;
  for (const Profile::Row& row : profile.rows)
    seconds += bench::floor_seconds(row, ceilings);
  return profile.steps != 0 ? seconds / static_cast<double>(profile.steps) : 0;
}

double floor_seconds(const Profile::Row& row, const Ceilings& ceilings) {
  const double bandwidth = ceilings.memory.best, peak = ceilings.peak_of(row.name);
  return std::max(bandwidth > 0 ? row.bytes * 1e-9 / bandwidth : 0, peak > 0 ? row.operations * 1e-12 / peak : 0);
}

Json profile_json(const PhaseProfile& phase, const Ceilings& ceilings) {
  const Profile& p = phase.profile;
  if (p.steps == 0)
    return {{"steps", 0}};
  const double each = 1e6 / static_cast<double>(p.steps);
  Json ops = Json::array();
  for (const Profile::Row& row : p.rows)
    ops.push_back(row_json(row, phase, ceilings));
  return {{"steps", p.steps},
          {"threads", p.threads},
          {"us_a_step", phase.step_seconds() * 1e6},
          {"bytes_a_step", p.bytes / static_cast<double>(p.steps)},
          {"floor_us", phase.floor_seconds(ceilings) * 1e6},
          {"of_floor", share(phase.floor_seconds(ceilings), phase.step_seconds())},
          {"work_us", p.work * each},
          {"waiting_us", p.waiting * each},
          {"alone_us", p.alone * each},
          {"setup_us", p.setup * each},
          {"between_steps_us", phase.outside * each},
          {"overhead_us", (p.overhead() + phase.outside) * each},
          {"ops", std::move(ops)}};
}

void print_profile(const PhaseProfile& phase, const Ceilings& ceilings) {
  const Profile& p = phase.profile;
  if (p.steps == 0)
    return;
  const auto steps = static_cast<double>(p.steps);
  const double step = phase.step_seconds(), floor = phase.floor_seconds(ceilings);
  std::printf("%s profile: %llu steps on %u threads, %.3f ms each, %.1f MB; reading at %.1f GB/s and computing at peak "
              "take %.3f ms: %.2f of the time\n",
              phase.phase.c_str(), static_cast<unsigned long long>(p.steps), p.threads, step * 1e3,
              p.bytes * 1e-6 / steps, ceilings.memory.best, floor * 1e3, share(floor, step));
  std::printf("  %-58s %13s %10s %6s %9s %8s %8s %8s %8s\n", "operation", "shape", "us a step", "%", "MB", "GB/s",
              "of read", "10^12/s", "of peak");
  for (const Profile::Row& row : p.rows) {
    std::string rest;
    rest += row.bytes > 0 ? number("%9.2f", row.bytes * 1e-6 / steps) + number(" %8.2f", row.gbps()) +
                                number(" %8.2f", share(row.gbps(), ceilings.memory.best))
                          : std::string(27, ' ');
    if (row.operations > 0) {
      rest += number(" %8.3f", row.tops());
      if (const double peak = ceilings.peak_of(row.name); peak > 0)
        rest += number(" %8.2f", row.tops() / peak);
    }
    print_line(row.name, shape_of(row), row.seconds * 1e6 / steps, share(row.seconds / steps, step), rest);
  }
  const double each = 1e6 / steps;
  auto overhead = [&](const char* name, double seconds) {
    print_line(name, "", seconds * each, share(seconds / steps, step), "");
  };
  std::printf("  of which no operation ran, or on one thread only:\n");
  overhead("waiting for barriers, slow items and work", p.waiting);
  overhead("operations of one thread, the others waiting", p.alone);
  overhead("before the first stage", p.setup);
  overhead("between steps", phase.outside);
}

Status write_trace(const std::string& path, const std::vector<PhaseProfile>& phases) {
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(std::string_view("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")));
  std::string text, separator;
  for (size_t i = 0; i < phases.size(); ++i) {
    const Profile& p = phases[i].profile;
    const auto process = std::to_string(i);
    const std::string title = phases[i].phase + ", " + std::to_string(p.threads) + " threads";
    text += separator + Json{{"name", "process_name"}, {"ph", "M"}, {"pid", i}, {"args", {{"name", title}}}}.dump();
    separator = ",\n";
    std::vector<std::string> names;
    for (const Profile::Row& row : p.rows)
      names.push_back(Json(row.name + " " + shape_of(row)).dump(-1, ' ', false, Json::error_handler_t::replace));
    for (const Profile::Event& event : p.events) {
      char times[80];
      std::snprintf(times, sizeof(times), "\"ts\":%.3f,\"dur\":%.3f}", event.start * 1e6, event.seconds * 1e6);
      text += separator + "{\"name\":" + names[event.row] + ",\"ph\":\"X\",\"pid\":" + process +
              ",\"tid\":" + std::to_string(event.thread) + "," + times;
      if (text.size() < (1 << 20))
        continue;
      CORTIQ_RETURN_IF_ERROR(file.write(text));
      text.clear();
    }
  }
  CORTIQ_RETURN_IF_ERROR(file.write(text + "]}\n"));
  return file.commit();
}

} // namespace cortiq::bench
