#pragma once

// Models of a given shape and codec, measured at once or kept for another machine.

#include <string>

#include "formats/status.h"
#include "tools/cortiq-bench/model_bench.h"

namespace cortiq::bench {

struct SyntheticBenchOptions {
  std::string spec;   ///< see parse_synthetic()
  std::string output; ///< .cqa: an artifact without weights; .gguf, .cmf: a model with random weights; empty = measure
  std::string numerics, target, gpu_experts;
  std::string prompt_numerics; ///< "same" or "half", empty is the compiler's default
  ModelBenchOptions model;     ///< how to measure; files are not used
};

Status bench_synthetic(const SyntheticBenchOptions& options);

} // namespace cortiq::bench
