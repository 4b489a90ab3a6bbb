#pragma once

// The 16 levels of IQ4_NL and IQ4_XS. There is no exact zero.

#include <cstdint>

namespace cortiq::formats {

inline constexpr int8_t kIQ4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

} // namespace cortiq::formats
