#pragma once

// Codecs whose rows are no records of equal size (vbit, vbit_ro) or are not stored as rows at all (blr): they keep
// their file's form in every layout. What packing still has to do is to take rows.

#include <cstdint>
#include <span>

#include "formats/codec/codec.h"
#include "formats/layout/random_stream.h"
#include "formats/status.h"

namespace cortiq::formats {

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
};

extern const StreamForm kVBitForm;
extern const StreamForm kVBitROForm;
extern const StreamForm kBLRForm;

/// The form of `codec`, or null.
const StreamForm* find_stream_form(CodecId codec);

} // namespace cortiq::formats
