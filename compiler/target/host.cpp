#include <fstream>
#include <sstream>
#include <unistd.h>

#include "compiler/target/target_table.h"

namespace cortiq::compiler {

Host readHost() {
  Host host;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    // "flags" on x86, "Features" on Arm. All cores are taken to be alike.
    if (!line.starts_with("flags") && !line.starts_with("Features"))
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      host.features.push_back(word);
    break;
  }
  host.l1Bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  host.l2Bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  host.cores = sysconf(_SC_NPROCESSORS_ONLN);
  return host;
}

} // namespace cortiq::compiler
