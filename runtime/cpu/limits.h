#pragma once

// How much of the machine this process may use: affinity mask, cgroup quotas, cores, memory.

#include <cstdint>
#include <string>
#include <vector>

namespace cortiq::runtime {

struct CpuLimits {
  unsigned affinity = 1; ///< logical CPUs this process may run on
  unsigned cores = 1;    ///< distinct physical cores among them
  double quota = 0;      ///< CPUs' worth of time of the tightest cgroup; 0 = unlimited
  uint64_t host_memory = 0;
  uint64_t memory_limit = 0; ///< of the tightest cgroup, bytes; 0 = unlimited
};

/// Reads the limits of this process. `root` is put before every path (tests give a folder of their own).
CpuLimits read_cpu_limits(const std::string& root = {});

/// Logical CPUs that this process may run on, ascending; empty when the system does not tell.
std::vector<unsigned> allowed_cpus();

/// min(affinity, floor(quota), cores), at least 1.
unsigned default_threads(const CpuLimits& limits);

/// Why default_threads() is what it is, in a few words: "every core", "the cgroup quota of 2.50 CPUs".
std::string default_threads_reason(const CpuLimits& limits);

} // namespace cortiq::runtime
