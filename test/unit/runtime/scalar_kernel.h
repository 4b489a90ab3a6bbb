#pragma once

// A plain matrix kernel for f32 weights in the R16 layout, so that the runtime is tested without the code generators.

#include <cstdint>
#include <vector>

namespace cortiq::test {

struct ScalarKernelSpec {
  uint32_t tokens = 1;
  uint32_t rows = 16;
  uint64_t k = 0;
  bool bias = false;
  bool residual = false;
};

/// Machine code that obeys formats/artifact/kernel_abi.h.
std::vector<uint8_t> scalar_kernel(const ScalarKernelSpec& spec);

} // namespace cortiq::test
