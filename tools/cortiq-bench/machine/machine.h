#pragma once

// The ceilings of this machine by number of threads.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/cpu/bandwidth.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {

struct Peak {
  const Unit* unit;
  double tops; ///< 10^12 operations a second
};

/// What one number of threads reaches.
struct Ceilings {
  unsigned threads = 0;
  runtime::ReadRate memory, mapping;
  std::vector<Peak> peaks;

  /// Peak of the fastest unit that kernels with the last word `isa` in their name use for int8 or f32; 0 = not known.
  double peak_of(const std::string& kernel) const;
};

enum class Extent { kNothing, kMemory, kMemoryAndUnits, kAll };

Ceilings measure_ceilings(unsigned threads, Extent extent);

nlohmann::ordered_json ceilings_json(const Ceilings& ceilings);

/// Measures every number of threads in turn and prints a table, or one JSON object.
void report_machine(const std::vector<unsigned>& threads, bool json);

} // namespace cortiq::bench
