#pragma once

// Cycles of straight-line code as LLVM's machine code analyser estimates them for a processor: all data in the first
// cache.

#include <span>
#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-bench/static/kernel_cost.h"

namespace cortiq::bench {

/// A processor that estimates are made for, by LLVM's name.
struct McaProcessor {
  std::string_view name;
  std::string_view triple;
  std::string_view attributes; ///< what LLVM does not know that it has, as -mattr takes it
};

/// The processors that code of an instruction set is meant for; `set` is the last word of a kernel's name.
std::vector<McaProcessor> processors_of(std::string_view set);

/// Fails where a processor's machine is another than that of an instruction set's code.
Status check_processor(const McaProcessor& processor, std::string_view set);

/// One of all processors by its name; fails with their names when there is none.
StatusOr<McaProcessor> find_processor(std::string_view name);

/// Path of llvm-mca-19 (llvm-mca without a version too); fails with a sentence that says how it is installed.
StatusOr<std::string> find_mca();

/// Cycles of one iteration of each strand. `folder` takes the files that the program reads and writes.
StatusOr<std::vector<double>> estimate_cycles(const std::string& program, const McaProcessor& processor,
                                              std::span<const Strand> strands, const std::string& folder);

/// The text that llvm-mca is given, each strand a region.
std::string mca_input(const McaProcessor& processor, std::span<const Strand> strands);

/// Cycles of one iteration of each region out of what `llvm-mca --json` prints; fails unless there are `regions`.
StatusOr<std::vector<double>> read_mca_output(const std::string& json, size_t regions);

} // namespace cortiq::bench
