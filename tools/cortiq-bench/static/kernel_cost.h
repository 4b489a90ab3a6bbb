#pragma once

// What a kernel's code costs a weight, counted without running it.

#include <string>
#include <vector>

#include "tools/cortiq-bench/static/listing.h"

namespace cortiq::bench {

/// A loop over weights: one with a known number of iterations, or without loops inside.
struct Strand {
  std::vector<std::string> body; ///< one iteration in the order in which it runs, loops inside repeated
  double iterations = 0;         ///< for what KernelCost counts
};

/// Counts for 32 weights of one token.
struct KernelCost {
  double instructions = 0; ///< of the strands
  double loads = 0;        ///< of those, the ones that read memory; x86's operands in memory are such
  double all = 0;          ///< also what stands between strands, in loops over groups of rows and tokens
  double products = 0;     ///< what was counted for: weights times tokens, divided by 32
  std::vector<Strand> strands;
};

/// Counts what a call runs for its full number of tokens and for one group of rows, of kernels for 16 tokens and more
/// for the groups that they take at a time. What a call does once, whatever it computes, is left out, and so are loops
/// whose limits the code computes: they fill in for groups that a call lacks.
KernelCost count_kernel(const ListedKernel& kernel);

/// Whether an instruction, AArch64's or x86's in Intel's syntax, reads memory.
bool reads_memory(const std::string& instruction);

} // namespace cortiq::bench
