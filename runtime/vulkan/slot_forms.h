#pragma once

// Rows of a slot between their form on the GPU (natural order, lane order, 8 bits; shader_abi.h) and the CPU's.

#include <cstdint>

#include "formats/artifact/artifact_generated.h"

namespace cortiq::runtime::vulkan {

/// One token's row: `from` is the row in the GPU's arena, `to` that of the CPU's.
void row_to_cpu(const artifact::GpuBuffer& buffer, const artifact::Buffer& slot, const float* from, uint8_t* to);
void row_from_cpu(const artifact::GpuBuffer& buffer, const artifact::Buffer& slot, const uint8_t* from, float* to);

} // namespace cortiq::runtime::vulkan
