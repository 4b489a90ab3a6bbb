#pragma once

#include <cstdint>

namespace cortiq::runtime {

/// What a model may take on each device, and how the expert bank of an artifact that has one is cut.
struct GpuRoom {
  uint64_t memory = 0;   ///< bytes of weights and experts; 0 = what is free
  uint64_t slots = 0;    ///< places for experts; 0 = as many as fit
  uint32_t segments = 0; ///< 8 or 16 buffers; 0 = 8, or 16 where 8 are too small
};

} // namespace cortiq::runtime
