#pragma once

// The one place that knows how records of neighbouring rows are woven into a group: unit u of row r stands at
// (u * rows + r) * unit bytes (layout.h gives the formula for a whole group, of which this is one run of equal units).

#include <cstddef>
#include <cstdint>

namespace cortiq::formats {

/// Weaves `count` units of `unit` (1, 2 or 4) bytes of each of `rows` records; record r starts at records + r * stride.
void interleave(const uint8_t* records, size_t stride, uint32_t rows, uint32_t unit, uint64_t count, uint8_t* out);

/// Takes `count` units of row `lane` back out of a woven run of `rows` rows.
void deinterleave(const uint8_t* woven, uint32_t rows, uint32_t lane, uint32_t unit, uint64_t count, uint8_t* out);

} // namespace cortiq::formats
