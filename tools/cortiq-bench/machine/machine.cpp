#include "tools/cortiq-bench/machine/machine.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/cpu/features.h"
#include "runtime/cpu/limits.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

Json rate_json(const runtime::ReadRate& rate) {
  return {{"gbps", rate.best},   {"median_gbps", rate.median}, {"gbps_by_cpu_time", rate.per_cpu},
          {"bytes", rate.bytes}, {"streams", rate.streams},    {"prefetch", rate.prefetch}};
}

Json caches_json() {
  Json out = Json::object();
#ifdef _SC_LEVEL1_DCACHE_SIZE
  out["l1d"] = std::max(0L, sysconf(_SC_LEVEL1_DCACHE_SIZE));
  out["l2"] = std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
  out["l3"] = std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  return out;
}

} // namespace

double Ceilings::peak_of(const std::string& kernel) const {
  const size_t word = kernel.rfind('_');
  if (word == std::string::npos)
    return 0;
  const std::string isa = " " + kernel.substr(word + 1) + " ";
  const bool integer = kernel.find("_q8a_") != std::string::npos;
  double best = 0;
  for (const Peak& peak : peaks)
    if ((" " + std::string(peak.unit->isas) + " ").find(isa) != std::string::npos &&
        (peak.unit->kind == "int8") == integer)
      best = std::max(best, peak.tops);
  return best;
}

Ceilings measure_ceilings(unsigned threads, Extent extent) {
  Ceilings out;
  out.threads = threads;
  if (extent == Extent::kNothing)
    return out;
  out.memory = runtime::measure_read_rate(threads);
  if (extent == Extent::kAll)
    out.mapping = runtime::measure_read_rate(threads, runtime::ReadSource::kMapping);
  if (extent != Extent::kMemory)
    for (const Unit* unit : usable_units())
      out.peaks.push_back({unit, measure_peak(*unit, threads)});
  return out;
}

Json ceilings_json(const Ceilings& c) {
  Json out = {{"threads", c.threads}, {"read", rate_json(c.memory)}};
  if (c.mapping.bytes != 0)
    out["read_mapping"] = rate_json(c.mapping);
  Json peaks = Json::array();
  for (const Peak& peak : c.peaks)
    peaks.push_back({{"unit", peak.unit->name}, {"kind", peak.unit->kind}, {"tops", peak.tops}});
  out["peaks"] = std::move(peaks);
  return out;
}

void report_machine(const std::vector<unsigned>& threads, bool json) {
  const runtime::CpuLimits limits = runtime::read_cpu_limits();
  const runtime::CpuState cpu = runtime::read_cpu_state();
  std::vector<Ceilings> all;
  for (const unsigned count : threads)
    all.push_back(measure_ceilings(count, Extent::kAll));
  if (json) {
    Json out = {{"processor", cpu.name},
                {"processors", limits.affinity},
                {"cores", limits.cores},
                {"caches", caches_json()},
                {"features", runtime::usable_features(cpu)}};
    out["missing_units"] = missing_units();
    out["threads"] = Json::array();
    for (const Ceilings& c : all)
      out["threads"].push_back(ceilings_json(c));
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s, %u processors, %u cores\n", cpu.name.empty() ? "processor" : cpu.name.c_str(), limits.affinity,
              limits.cores);
  std::printf("%-24s %10s", "threads", "");
  for (const Ceilings& c : all)
    std::printf(" %9u", c.threads);
  auto line = [&](const std::string& name, const char* unit, auto value) {
    std::printf("\n%-24s %10s", name.c_str(), unit);
    for (const Ceilings& c : all)
      std::printf(" %9.3g", value(c));
  };
  line("read memory, best", "GB/s", [](const Ceilings& c) { return c.memory.best; });
  line("read memory, median", "GB/s", [](const Ceilings& c) { return c.memory.median; });
  line("  by processor time", "GB/s", [](const Ceilings& c) { return c.memory.per_cpu; });
  line("read file mapping, best", "GB/s", [](const Ceilings& c) { return c.mapping.best; });
  const size_t units = all.empty() ? 0 : all.front().peaks.size();
  for (size_t i = 0; i < units; ++i)
    line(std::string(all.front().peaks[i].unit->name), "10^12/s", [i](const Ceilings& c) { return c.peaks[i].tops; });
  std::printf("\n");
  for (const std::string_view name : missing_units())
    std::printf("%-24s not on this machine\n", std::string(name).c_str());
}

} // namespace cortiq::bench
