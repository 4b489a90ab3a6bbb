#pragma once

// The quantization that operations on whole rows end in.

#include <cstdint>

namespace cortiq::runtime {

/// Writes the `k` activations at `x`, padded to 16, as one q8a record (formats/artifact/kernel_abi.h); with `bf16` as
/// one of q8a_bf16.
void quantize_row(const float* x, uint64_t k, uint8_t* record, bool bf16 = false);

} // namespace cortiq::runtime
