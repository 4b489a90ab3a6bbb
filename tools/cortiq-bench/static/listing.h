#pragma once

// Reads what `cortiq-compile --emit=asm` prints: kernels as instructions and the counted loops that the emitter knows
// of.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"
#include "formats/status.h"

namespace cortiq::bench {

/// What says how often a loop runs.
enum class LoopLimit {
  kIterations, ///< it is known
  kGroups,     ///< row groups of a call
  kTokens,     ///< tokens of a call
  kOther,      ///< what the code computes
};

struct ListedLoop {
  size_t begin = 0, end = 0; ///< instructions of the body, the branch back included
  LoopLimit limit = LoopLimit::kOther;
  uint64_t iterations = 0; ///< where they are known
  uint64_t step = 0;       ///< what an iteration adds to the counter
  int parent = -1;         ///< number of the loop around it, or -1
};

/// One kernel. Its name says what it computes (docs/kernel-names.md).
struct ListedKernel {
  std::string name;
  const formats::Codec* codec = nullptr;
  formats::LayoutId layout = formats::LayoutId::kVerbatim;
  uint64_t columns = 0, tokens = 0, rows = 0;
  std::string set;                       ///< instruction set, the name's last word
  std::vector<std::string> instructions; ///< in the assembler's syntax, parts separated by single blanks
  std::vector<ListedLoop> loops;         ///< outer ones before those in them
};

/// The kernels of a listing whose names follow the grammar. Fails where lines do not read as a listing.
StatusOr<std::vector<ListedKernel>> parse_listing(std::string_view text);

} // namespace cortiq::bench
