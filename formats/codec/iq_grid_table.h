#pragma once

// How the grids stand in the source: one number an entry, with the place of each weight's value among the grid's few
// values, the first weight in the lowest bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cortiq::formats {

/// The bytes of all entries. kBits a weight, as many weights as Entry has bytes.
template <class Entry, int kBits, size_t kValues, size_t kEntries>
constexpr std::array<Entry, kEntries> expand_grid(const uint16_t (&places)[kEntries],
                                                  const std::array<int8_t, kValues>& values) {
  std::array<Entry, kEntries> grid = {};
  for (size_t e = 0; e < kEntries; ++e)
    for (size_t j = 0; j < sizeof(Entry); ++j) {
      const int8_t value = values[places[e] >> (kBits * j) & ((1 << kBits) - 1)];
      grid[e] |= static_cast<Entry>(static_cast<uint8_t>(value)) << (8 * j);
    }
  return grid;
}

/// The same, made once; kPlaces and kValues are arrays as above.
template <class Entry, int kBits, auto& kPlaces, auto& kValues>
std::span<const Entry> expanded_grid() {
  static constexpr auto kGrid = expand_grid<Entry, kBits>(kPlaces, kValues);
  return kGrid;
}

} // namespace cortiq::formats
