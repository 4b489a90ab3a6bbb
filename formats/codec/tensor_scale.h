#pragma once

#include <cstdint>

namespace cortiq::formats {

/// What follows the codes of I2_S and I8_S: one f32 scale for the whole tensor and 28 bytes of padding.
inline constexpr uint64_t kTensorScaleBytes = 32;

} // namespace cortiq::formats
