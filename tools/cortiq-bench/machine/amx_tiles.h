#pragma once

// The tile registers of AMX, all of 16 rows of 64 bytes: 0 to 3 sums, 4 to 7 what is multiplied.

#include <cstdint>
#include <immintrin.h>

#include "runtime/cpu/tile_config.h"

namespace cortiq::bench {
namespace {

inline void open_tiles() {
  alignas(64) static const uint8_t zeros[1024] = {};
  _tile_loadconfig(&runtime::kTileConfig);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, zeros, 64);
  _tile_loadd(5, zeros, 64);
  _tile_loadd(6, zeros, 64);
  _tile_loadd(7, zeros, 64);
}

/// Unit::run of a tile unit: `products` makes the four products of tiles 4 and 5 by 6 and 7 into the sums.
template <class Products>
uint64_t run_tiles(uint64_t rounds, Products products) {
  open_tiles();
  for (uint64_t i = 0; i < rounds; ++i)
    products();
  _tile_release();
  return 0;
}

} // namespace
} // namespace cortiq::bench
