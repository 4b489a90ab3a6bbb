#pragma once

// cortiq-bench --static: what kernels cost, told from their code.

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::bench {

struct StaticBenchOptions {
  std::string what;       ///< codecs with commas between, or a model file
  std::string shape;      ///< of the matrix that codecs are compiled for; empty: kStaticShape
  std::string numerics;   ///< "fast", "exact", or empty for the compiler's choice
  std::string targets;    ///< with commas between; empty: native
  std::string processors; ///< with commas between; empty: those of each target
  bool json = false;
};

inline constexpr char kStaticShape[] = "64x3072";

/// Compiles, counts and prints a table, or one JSON object.
Status bench_static(const StaticBenchOptions& options);

} // namespace cortiq::bench
