#include "runtime/cpu/numa.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <linux/mempolicy.h>
#include <optional>
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

/// The first line of `path` that starts with `word`, read as a list behind it; no value where there is none.
std::optional<std::vector<unsigned>> read_list(const std::string& path, unsigned limit, std::string_view word = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(word)) {
      const size_t at = line.find_first_not_of(" \t", word.size());
      return parse_list(at == std::string::npos ? "" : line.substr(at), limit);
    }
  return std::nullopt;
}

/// What the system does not tell of allows all.
bool allows(const std::optional<std::vector<unsigned>>& list, unsigned id) {
  return !list || std::ranges::find(*list, id) != list->end();
}

/// Node numbers as the system calls take them.
std::vector<unsigned long> node_mask(std::span<const unsigned> nodes) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(kMaxNodes / kBits);
  for (const unsigned node : nodes)
    mask[node / kBits] |= 1ul << (node % kBits);
  return mask;
}

} // namespace

std::vector<NumaNode> read_numa_nodes(const std::vector<unsigned>& allowed, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  const auto with_memory = read_list(folder + "has_memory", kMaxNodes);
  const auto permitted = read_list(root + "/proc/self/status", kMaxNodes, "Mems_allowed_list:");
  std::vector<NumaNode> out;
  for (const unsigned id : read_list(folder + "online", kMaxNodes).value_or(std::vector<unsigned>())) {
    NumaNode node{id, {}, allows(with_memory, id) && allows(permitted, id)};
    const auto cpus = read_list(folder + "node" + std::to_string(id) + "/cpulist", kMaxCpus);
    for (const unsigned cpu : cpus.value_or(std::vector<unsigned>()))
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

NumaPlan plan_numa(std::vector<NumaNode> nodes) {
  NumaPlan plan;
  if (nodes.size() < 2)
    return plan;
  for (const NumaNode& node : nodes)
    if (node.memory)
      plan.memory.push_back(node.id);
  if (plan.memory.size() < 2)
    plan.memory.clear();
  plan.homes = std::move(nodes);
  return plan;
}

bool interleave(void* base, uint64_t bytes, std::span<const unsigned> nodes) {
  const std::vector<unsigned long> mask = node_mask(nodes);
  // The kernel counts the bits of the mask and one more.
  return bytes != 0 && syscall(SYS_mbind, base, bytes, MPOL_INTERLEAVE, mask.data(), kMaxNodes + 1ul, 0ul) == 0;
}

bool interleave_thread(std::span<const unsigned> nodes) {
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
