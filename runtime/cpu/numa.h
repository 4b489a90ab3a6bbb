#pragma once

// Memory nodes of the machine: which processors are near which memory, and what is made of it. System calls only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cortiq::runtime {

struct NumaNode {
  unsigned id = 0;
  std::vector<unsigned> cpus; ///< those that this process may run on, ascending
  bool memory = true;         ///< it has some, and this process may use it
};

/// Nodes with processors of this process's affinity, ascending; empty where the system tells of none. `root` is put
/// before every path (tests give a folder of their own).
std::vector<NumaNode> read_numa_nodes(const std::string& root = {});
/// As above for these processors.
std::vector<NumaNode> read_numa_nodes(const std::vector<unsigned>& allowed, const std::string& root);

/// The node that worker `index` of `workers` belongs to: neighbours share a node, nodes get workers by their
/// processors. `nodes` is not empty.
size_t home_of(unsigned index, unsigned workers, const std::vector<NumaNode>& nodes);

/// What is done on a machine with these nodes.
struct NumaPlan {
  std::vector<NumaNode> homes;  ///< nodes that workers are bound to; empty = they run anywhere
  std::vector<unsigned> memory; ///< nodes whose memory is taken in turn; empty = where it is first touched
};
/// Workers are bound where several nodes have processors of ours, memory is interleaved where at least two of these
/// have memory of ours as well. Other nodes' memory is left alone: it is far from all workers.
NumaPlan plan_numa(std::vector<NumaNode> nodes);

/// Pages of [base, base + bytes) that are not there yet will lie on `nodes` in turn. False when the system refuses, and
/// the pages lie as it likes.
bool interleave(void* base, uint64_t bytes, std::span<const unsigned> nodes);
/// The same for all pages that the calling thread touches first, those of files among them.
bool interleave_thread(std::span<const unsigned> nodes);
/// The calling thread runs on the processors of `node` only. False when the system refuses.
bool bind_thread(const NumaNode& node);

} // namespace cortiq::runtime
