#pragma once

// kPlanes, the layout of GPU targets: the canonical record form (layout.h) with every field in a plane of its own, so
// that neighbouring lanes of a processor, which have neighbouring blocks, find their codes in consecutive 16 bytes and
// their scales beside each other. Some codecs order the bytes of a block anew for it (plane_order.h), as many as
// before.
//
// The tensor part stands first, then the codebook of codecs that have one (codebook.h). Then come the planes, header
// fields before record fields, in the order of r16_format(); each starts at a multiple of 16. A plane of a header field
// has unit * count bytes a row, that of a record field unit * count bytes a block, row by row without gaps. A record
// field of 32 bytes a block of 32 weights (8-bit codes) is woven: a row's blocks are cut into runs of 32 (the last has
// what remains), and a run holds the first halves of its blocks, then the second halves. An overlay starts at the next
// multiple of 64.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/layout/row_group.h"

namespace cortiq::formats {

/// One plane of a packed tensor.
struct Plane {
  LayoutField field;
  uint64_t start;     ///< first byte, from the tensor's start
  uint64_t row_bytes; ///< bytes a row
  bool header;        ///< a field of the row header, not of the block records
  bool woven;
};

/// The planes of a tensor of `rows` rows, and `end`, the bytes up to the last plane's end; fails when the size
/// overflows.
struct Planes {
  std::vector<Plane> planes;
  uint64_t end;
};
StatusOr<Planes> planes_of(const Codec& codec, const RecordShape& shape, uint64_t rows);

/// Writes the codebook to its place.
void write_codebook(const Codec& codec, const RecordShape& shape, uint8_t* tensor);

/// Writes row `row`, given as its header and records, to its places in the planes; and reads it back.
void scatter_row(const RecordShape& shape, const Planes& planes, uint64_t row, const uint8_t* record, uint8_t* tensor);
void gather_row(const RecordShape& shape, const Planes& planes, uint64_t row, const uint8_t* tensor, uint8_t* record);

/// Rows [first, first + count) of a tensor in layout kPlanes, as if they alone had been packed.
StatusOr<std::vector<uint8_t>> slice_planes(const Codec& codec, std::span<const uint8_t> packed, uint64_t rows,
                                            uint64_t cols, uint64_t first, uint64_t count);

} // namespace cortiq::formats
