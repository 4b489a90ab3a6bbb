#pragma once

// How well a model predicts a text.

#include <cstdint>
#include <string>

#include "formats/status.h"
#include "runtime/vulkan/gpu_room.h"

namespace cortiq::bench {

struct QualityBenchOptions {
  std::string file;      ///< artifact, or a model that is compiled for this measurement
  std::string text;      ///< file of UTF-8 text
  uint64_t context = 0;  ///< tokens a window; 0: 512, or less where the artifact holds less
  std::string reference; ///< artifact or model (compiled as `exact`), or the word "exact"; empty: no comparison
  std::string numerics;  ///< for a model: "fast" or "exact", empty is the compiler's default
  std::string target;    ///< for models: empty is the compiler's default
  std::string kv;
  std::string device; ///< GPUs that run the model, as in "0,1"; empty: the CPU, which a reference runs on anyway
  runtime::GpuRoom gpu_room;
  unsigned threads = 0;
  bool json = false;
  bool verbose = false;
};

/// The word of `reference` that stands for the model itself, compiled as `exact`.
inline constexpr char kExactReference[] = "exact";

/// Measures perplexity on the text and, with a reference, the divergence from it, and prints them.
Status bench_quality(const QualityBenchOptions& options);

} // namespace cortiq::bench
