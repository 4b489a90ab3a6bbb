#pragma once

// The scale ladders of q4tp and q2tp from the encoder's side: 2^lo, then steps of 2^step, both exponents f16.

#include <array>
#include <cstdint>

#include "formats/encode/row_planes.h"

namespace cortiq::formats {

/// log2 of a positive normal number and 2^x by fixed series, so that files come out the same on every machine.
double series_log2(double x);
double series_exp2(double x);

/// The exponents of a ladder as f16 bits.
struct LadderParameters {
  uint16_t lo = 0, step = 0;
};

/// The ladder from 2^lo that reaches 2^top with `steps` steps: `lo` rounds to f16, the step is rounded and then raised
/// until it is positive and the last rung is no lower than 2^top.
LadderParameters fit_ladder(double lo, double top, int steps);

/// Puts the 5-bit code of tile `tile` into the zeroed code bytes of its row, lowest bits first.
void put_rung(uint8_t* codes, uint64_t tile, uint32_t rung);

/// The planes of `rows` rows of tiles with `tile_bytes` bytes of codes each: codes, parameters, rung codes
/// (codec/ladder_planes.h).
std::array<Plane, 3> ladder_planes(uint64_t rows, uint64_t tiles, uint64_t tile_bytes);

} // namespace cortiq::formats
