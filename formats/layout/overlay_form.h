#pragma once

// The part of q1s and q1t that lies beside the records: the weights that a tensor's tiles miss. A packed tensor has it
// behind its groups, from overlay_offset() on, in the file's own form, but for the packed rows, in the order of rows
// and columns, and with one entry a weight. So a row's entries can be searched for, and a kernel may also add (value -
// what the tile says) * x for each of them.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/status.h"

namespace cortiq::formats {

struct OverlayForm {
  uint64_t (*least_bytes)(uint64_t rows); ///< of an overlay without entries
  void (*write_empty)(uint64_t rows, uint8_t* out);

  /// The overlay of the rows that `row_map` takes from a tensor of `rows` x `cols` with a checked overlay.
  StatusOr<std::vector<uint8_t>> (*gather)(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols,
                                           std::span<const uint32_t> row_map);

  /// Holds a gathered overlay against its shape.
  Status (*check)(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols);

  /// Puts the entries of row `row` into its decoded weights.
  void (*apply)(const uint8_t* overlay, uint64_t rows, uint64_t cols, uint64_t row, float* out);
};

extern const OverlayForm kQ1SOverlay;
extern const OverlayForm kQ1TOverlay;

} // namespace cortiq::formats
