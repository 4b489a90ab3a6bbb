#pragma once

// Payloads made of planes: areas side by side with the same number of bytes for every row (codes, then scales).

#include <cstdint>
#include <functional>
#include <span>

#include "formats/encode/row_source.h"
#include "formats/status.h"

namespace cortiq::formats {

struct Plane {
  uint64_t offset; ///< of row 0, from the payload's start
  uint64_t row_bytes;
};

/// Fills row `row` of every plane: planes[p] are its row_bytes of plane p, zeroed.
using RowFiller = std::function<void(uint64_t row, std::span<uint8_t* const> planes)>;

/// Calls `fill` for all rows, on up to `threads` threads, and writes what it made. A few MiB are held at a time.
Status write_planes(PayloadSink& sink, uint64_t rows, std::span<const Plane> planes, unsigned threads,
                    const RowFiller& fill);

/// Calls `work` for the rows [first, first + count) on up to `threads` threads.
void for_each_row(uint64_t first, uint64_t count, unsigned threads, const std::function<void(uint64_t row)>& work);

} // namespace cortiq::formats
