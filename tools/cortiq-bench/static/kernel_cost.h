#pragma once

// What a kernel's code costs a weight, counted without running it.

#include <optional>
#include <string>
#include <vector>

#include "tools/cortiq-bench/static/listing.h"

namespace cortiq::bench {

/// A loop with a known number of iterations that no other such loop is in.
struct Strand {
  std::vector<std::string> body; ///< one iteration in the order in which it runs, loops inside repeated
  double iterations = 0;         ///< for one group of rows and all tokens of the kernel
};

/// Counts for 32 weights of one token.
struct KernelCost {
  double instructions = 0; ///< of the strands
  double loads = 0;        ///< of those, the ones that read memory; x86's operands in memory are such
  double all = 0;          ///< of a group of rows as a whole: also what stands around the strands
  double products = 0;     ///< what was counted for: weights of a group times tokens, divided by 32
  std::vector<Strand> strands;
};

/// Counts what the kernel runs for one group of rows and its full number of tokens: the body of the one loop of unknown
/// count that no other is around, which walks over the groups. Such loops inside of it walk over tokens. A body without
/// loops is one strand. Nothing where loops lie otherwise, as those of kernels on tiles do, which take several groups
/// at a time.
std::optional<KernelCost> count_kernel(const ListedKernel& kernel);

/// Whether an instruction, AArch64's or x86's in Intel's syntax, reads memory.
bool reads_memory(const std::string& instruction);

} // namespace cortiq::bench
