#pragma once

// How fast one generated kernel is.

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::bench {

struct KernelSpeedOptions {
  std::string codec; ///< "gguf:Q4_K", "cmf:q4tp"
  std::string shape; ///< "ROWSxCOLS"
  std::string numerics = "fast", target;
  std::vector<unsigned> threads; ///< each is measured in turn
  bool json = false;
};

/// Compiles y = W x for random weights with cortiq-compile and profiles it with one token and with a full batch.
Status bench_kernel_speed(const KernelSpeedOptions& options);

} // namespace cortiq::bench
