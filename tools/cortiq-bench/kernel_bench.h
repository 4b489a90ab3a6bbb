#pragma once

// One generated kernel on given weights and inputs.

#include <cstdint>
#include <string>

#include "formats/status.h"

namespace cortiq::bench {

struct KernelBenchOptions {
  std::string codec;   ///< "gguf:Q4_K", "cmf:q4tp"
  std::string shape;   ///< "ROWSxCOLS"
  std::string weights; ///< file of the packed payload
  std::string x;       ///< file of float32 inputs, one row or several
  std::string out;     ///< file that receives the float32 results
  std::string numerics = "fast";
  std::string target;
  unsigned threads = 1;
};

/// Compiles the kernel's artifact with cortiq-compile, runs it, writes y = W x.
Status bench_kernel(const KernelBenchOptions& options);

} // namespace cortiq::bench
