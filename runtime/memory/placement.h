#pragma once

// How the memory of weights, caches and work space lies: pages and nodes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/cpu/numa.h"

namespace cortiq::runtime {

struct Placement {
  /// Large pages for caches and work space, and weights copied into such pages at load: a mapped file has small ones.
  bool large_pages = false;
  /// On machines of several nodes: memory interleaved over them, workers bound to one each.
  bool numa = true;
  /// Put before the paths that tell of nodes; tests give a folder of their own.
  std::string root = {};
};

/// From the words of the options --pages ("system", "large") and --numa ("auto", "off").
Placement placement_of(std::string_view pages, std::string_view numa);

/// What `placement` comes to on this machine: nothing when it takes no account of nodes, or when there is only one.
NumaPlan numa_plan(const Placement& placement);

/// Prepares fresh anonymous memory, before it is touched. What the system refuses is left as it is.
void place(void* base, uint64_t bytes, const Placement& placement);

/// Copies with `threads` threads: most of the time goes into the first touch of pages.
void copy_parallel(std::span<const uint8_t> from, uint8_t* to, unsigned threads);

} // namespace cortiq::runtime
