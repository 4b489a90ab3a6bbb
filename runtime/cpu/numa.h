#pragma once

// Memory nodes of the machine: which processors are near which memory. System calls only.

#include <cstdint>
#include <string>
#include <vector>

namespace cortiq::runtime {

struct NumaNode {
  unsigned id = 0;
  std::vector<unsigned> cpus; ///< those that this process may run on, ascending
};

/// Nodes with processors of this process's affinity, ascending; empty where the system tells of none. `root` is put
/// before every path (tests give a folder of their own).
std::vector<NumaNode> read_numa_nodes(const std::string& root = {});
/// As above for these processors.
std::vector<NumaNode> read_numa_nodes(const std::vector<unsigned>& allowed, const std::string& root);

/// The node that worker `index` of `workers` belongs to: neighbours share a node, nodes get workers by their
/// processors. `nodes` is not empty.
size_t home_of(unsigned index, unsigned workers, const std::vector<NumaNode>& nodes);

/// Pages of [base, base + bytes) that are not there yet will lie on `nodes` in turn. False when the system refuses, and
/// the pages lie as it likes.
bool interleave(void* base, uint64_t bytes, const std::vector<NumaNode>& nodes);
/// The same for all pages that the calling thread touches first, those of files among them.
bool interleave_thread(const std::vector<NumaNode>& nodes);
/// The calling thread runs on the processors of `node` only. False when the system refuses.
bool bind_thread(const NumaNode& node);

} // namespace cortiq::runtime
