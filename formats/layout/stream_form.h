#pragma once

// Codecs whose rows are no records of equal size (vbit, vbit_ro) or are not stored as rows at all (blr): they keep
// their file's form in every layout but that of a GPU. What packing still has to do is to take rows.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"
#include "formats/layout/random_stream.h"
#include "formats/status.h"

namespace cortiq::formats {

/// Such rows as a GPU reads them (LayoutId::kPlanes). Where `row_map` is empty all rows are taken.
struct StreamPlanes {
  StatusOr<uint64_t> (*least_bytes)(const Codec& codec, uint64_t rows, uint64_t cols);
  /// Of the planes that pack() makes.
  StatusOr<uint64_t> (*bytes)(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols,
                              std::span<const uint32_t> row_map);
  void (*pack)(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map,
               uint8_t* out);
  Status (*check)(const Codec& codec, std::span<const uint8_t> packed, uint64_t rows, uint64_t cols);
  // Of planes that were checked:
  /// Rows [first, first + count) alone.
  std::vector<uint8_t> (*slice)(std::span<const uint8_t> packed, uint64_t rows, uint64_t cols, uint64_t first,
                                uint64_t count);
  void (*decode_row)(std::span<const uint8_t> packed, uint64_t rows, uint64_t cols, uint64_t row, float* out);
};

struct StreamForm {
  CodecId codec;

  /// Bytes of the payload of the rows that `row_map` takes from a checked payload of `rows` rows.
  StatusOr<uint64_t> (*taken_bytes)(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols,
                                    std::span<const uint32_t> row_map);
  /// Writes that payload.
  void (*take_rows)(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map,
                    uint8_t* out);
  /// Makes a random payload of the least size.
  void (*fill)(RandomStream& random, uint64_t rows, uint64_t cols, uint8_t* out);
  const StreamPlanes* planes = nullptr;
};

extern const StreamPlanes kVBitPlanes;
extern const StreamPlanes kVBitROPlanes;

extern const StreamForm kVBitForm;
extern const StreamForm kVBitROForm;
extern const StreamForm kBLRForm;

/// The form of `codec`, or null.
const StreamForm* find_stream_form(CodecId codec);
/// How `layout` has the rows of `codec`, where that is planes of a stream; else null.
const StreamPlanes* find_stream_planes(CodecId codec, LayoutId layout);

} // namespace cortiq::formats
