#pragma once

// How the eight tile registers of AMX are shaped wherever our own code, not generated kernels, uses them.

#include <cstdint>

namespace cortiq::runtime {

/// The operand of LDTILECFG: 16 rows of 64 bytes each.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// A constant, so that no constructor is compiled for processors with tiles.
inline constexpr TileConfig kTileConfig;

} // namespace cortiq::runtime
