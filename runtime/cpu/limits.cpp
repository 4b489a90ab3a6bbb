#include "runtime/cpu/limits.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sched.h>
#include <set>
#include <sstream>
#include <vector>

namespace cortiq::runtime {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  return line;
}

std::optional<uint64_t> number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  return value;
}

void tighten(double& quota, double found) {
  if (found > 0 && (quota == 0 || found < quota))
    quota = found;
}
void tighten(uint64_t& limit, uint64_t found) {
  // Version 1 writes "no limit" as the largest multiple of a page.
  if (found != 0 && found < (uint64_t{1} << 60) && (limit == 0 || found < limit))
    limit = found;
}

/// "MAX PERIOD" or "max PERIOD" of cgroup version 2.
void read_v2(const std::string& folder, CpuLimits& out) {
  if (const auto line = first_line(folder + "/cpu.max")) {
    std::istringstream words(*line);
    std::string max, period;
    words >> max >> period;
    const auto m = number(max), p = number(period);
    if (m && p && *p != 0)
      tighten(out.quota, static_cast<double>(*m) / static_cast<double>(*p));
  }
  if (const auto line = first_line(folder + "/memory.max"))
    tighten(out.memory_limit, number(*line).value_or(0));
}

void read_v1_cpu(const std::string& folder, CpuLimits& out) {
  const auto quota = first_line(folder + "/cpu.cfs_quota_us");
  const auto period = first_line(folder + "/cpu.cfs_period_us");
  if (!quota || !period)
    return;
  const auto q = number(*quota), p = number(*period); // no quota is written as -1, which is no number here
  if (q && p && *p != 0)
    tighten(out.quota, static_cast<double>(*q) / static_cast<double>(*p));
}

void read_v1_memory(const std::string& folder, CpuLimits& out) {
  if (const auto line = first_line(folder + "/memory.limit_in_bytes"))
    tighten(out.memory_limit, number(*line).value_or(0));
}

/// Calls `visit` for the group's folder and every folder above it up to the mount: limits nest.
template <class Visit>
void for_each_level(const std::string& mount, std::string group, Visit visit) {
  while (true) {
    visit(mount + group);
    if (group.empty())
      return;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

void read_cgroups(const std::string& root, CpuLimits& out) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // "ID:CONTROLLERS:PATH"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/")
      group.clear();
    if (controllers == ",,") {
      for_each_level(mount, group, [&](const std::string& folder) { read_v2(folder, out); });
      for_each_level(mount + "/unified", group, [&](const std::string& folder) { read_v2(folder, out); });
    }
    if (controllers.find(",cpu,") != std::string::npos)
      for (const char* name : {"/cpu", "/cpu,cpuacct"})
        for_each_level(mount + name, group, [&](const std::string& folder) { read_v1_cpu(folder, out); });
    if (controllers.find(",memory,") != std::string::npos)
      for_each_level(mount + "/memory", group, [&](const std::string& folder) { read_v1_memory(folder, out); });
  }
}

uint64_t read_host_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  if (file >> key >> kib && key == "MemTotal:")
    return kib * 1024;
  return 0;
}

} // namespace

std::vector<unsigned> allowed_cpus() {
  // The kernel refuses a set smaller than its own.
  for (unsigned most = CPU_SETSIZE; most <= 1u << 16; most *= 4) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (!set)
      return {};
    const size_t bytes = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(bytes, set);
    std::vector<unsigned> cpus;
    const bool done = sched_getaffinity(0, bytes, set) == 0;
    for (unsigned i = 0; done && i < most; ++i)
      if (CPU_ISSET_S(i, bytes, set))
        cpus.push_back(i);
    CPU_FREE(set);
    if (done)
      return cpus;
  }
  return {};
}

CpuLimits read_cpu_limits(const std::string& root) {
  CpuLimits out;
  const std::vector<unsigned> cpus = allowed_cpus();
  out.affinity = std::max<unsigned>(1, static_cast<unsigned>(cpus.size()));
  std::set<std::string> cores; // CPUs with the same siblings are one core
  for (unsigned cpu : cpus) {
    const auto siblings =
        first_line(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    cores.insert(siblings.value_or("cpu" + std::to_string(cpu)));
  }
  out.cores = std::max<unsigned>(1, static_cast<unsigned>(cores.size()));
  read_cgroups(root, out);
  out.host_memory = read_host_memory(root);
  return out;
}

unsigned default_threads(const CpuLimits& limits) {
  unsigned threads = std::min(limits.affinity, limits.cores);
  if (limits.quota > 0)
    threads = std::min(threads, static_cast<unsigned>(std::max(1.0, std::min(limits.quota, 65536.0))));
  return std::max(1u, threads);
}

std::string default_threads_reason(const CpuLimits& limits) {
  char text[96];
  if (limits.quota > 0 && limits.quota < std::min(limits.affinity, limits.cores)) {
    std::snprintf(text, sizeof(text), "the cgroup quota of %.2f CPUs", limits.quota);
    return text;
  }
  if (limits.cores < limits.affinity) {
    std::snprintf(text, sizeof(text), "one on each of %u cores, none on the other %u hardware threads", limits.cores,
                  limits.affinity - limits.cores);
    return text;
  }
  return "one on each processor that the process may use";
}

} // namespace cortiq::runtime
