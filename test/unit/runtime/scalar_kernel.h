#pragma once

// Plain matrix kernels for f32 weights in the R16 layout, so that the runtime is tested without the code generators.

#include <cstdint>
#include <vector>

namespace cortiq::test {

/// What the kernel reads of a token: floats, the codes of a q8a record, or the bf16 values behind one.
enum class ScalarInput { kF32, kCodes, kBf16 };

struct ScalarKernelSpec {
  uint32_t tokens = 1; ///< with bf16 as many as the arguments say
  uint32_t rows = 16;
  uint64_t k = 0;
  bool bias = false;
  bool residual = false;
  ScalarInput input = ScalarInput::kF32;
};

/// Machine code that obeys formats/artifact/kernel_abi.h.
std::vector<uint8_t> scalar_kernel(const ScalarKernelSpec& spec);

} // namespace cortiq::test
