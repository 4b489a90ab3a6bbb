#include "runtime/cpu/numa.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/cpu/limits.h"

namespace cortiq::runtime {
namespace {

// More nodes than any machine has; it bounds what a list may name.
constexpr unsigned kMaxNodes = 1024;
constexpr unsigned kMaxCpus = 1 << 16;

/// "0-3,8,10-11": the numbers below `limit`; what does not read as such ends the list.
std::vector<unsigned> parse_list(const std::string& text, unsigned limit) {
  std::vector<unsigned> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    unsigned first = 0, last = 0;
    auto result = std::from_chars(at, end, first);
    if (result.ec != std::errc())
      break;
    last = first;
    at = result.ptr;
    if (at < end && *at == '-') {
      result = std::from_chars(at + 1, end, last);
      if (result.ec != std::errc())
        break;
      at = result.ptr;
    }
    for (unsigned i = first; i <= last && i < limit; ++i)
      out.push_back(i);
    if (at >= end || *at != ',')
      break;
    ++at;
  }
  return out;
}

std::vector<unsigned> read_list(const std::string& path, unsigned limit) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return parse_list(line, limit);
}

/// Node numbers as the system calls take them.
std::vector<unsigned long> node_mask(const std::vector<NumaNode>& nodes) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(kMaxNodes / kBits);
  for (const NumaNode& node : nodes)
    mask[node.id / kBits] |= 1ul << (node.id % kBits);
  return mask;
}

} // namespace

std::vector<NumaNode> read_numa_nodes(const std::vector<unsigned>& allowed, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  std::vector<NumaNode> out;
  for (const unsigned id : read_list(folder + "online", kMaxNodes)) {
    NumaNode node{id, {}};
    for (const unsigned cpu : read_list(folder + "node" + std::to_string(id) + "/cpulist", kMaxCpus))
      if (std::binary_search(allowed.begin(), allowed.end(), cpu))
        node.cpus.push_back(cpu);
    if (!node.cpus.empty())
      out.push_back(std::move(node));
  }
  return out;
}

std::vector<NumaNode> read_numa_nodes(const std::string& root) {
  return read_numa_nodes(allowed_cpus(), root);
}

size_t home_of(unsigned index, unsigned workers, const std::vector<NumaNode>& nodes) {
  uint64_t cpus = 0, before = 0;
  for (const NumaNode& node : nodes)
    cpus += node.cpus.size();
  const uint64_t cpu = uint64_t{index} * cpus / std::max(1u, workers);
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    before += nodes[i].cpus.size();
    if (cpu < before)
      return i;
  }
  return nodes.size() - 1;
}

bool interleave(void* base, uint64_t bytes, const std::vector<NumaNode>& nodes) {
  const std::vector<unsigned long> mask = node_mask(nodes);
  // The kernel counts the bits of the mask and one more.
  return bytes != 0 && syscall(SYS_mbind, base, bytes, MPOL_INTERLEAVE, mask.data(), kMaxNodes + 1ul, 0ul) == 0;
}

bool interleave_thread(const std::vector<NumaNode>& nodes) {
  const std::vector<unsigned long> mask = node_mask(nodes);
  return syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, mask.data(), kMaxNodes + 1ul) == 0;
}

bool bind_thread(const NumaNode& node) {
  if (node.cpus.empty())
    return false;
  const unsigned most = node.cpus.back() + 1;
  cpu_set_t* set = CPU_ALLOC(most);
  if (!set)
    return false;
  const size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, set);
  for (const unsigned cpu : node.cpus)
    CPU_SET_S(cpu, bytes, set);
  const bool done = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return done;
}

} // namespace cortiq::runtime
