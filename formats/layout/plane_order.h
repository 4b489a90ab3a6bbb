#pragma once

// Blocks of 256 weights whose groups of 32 share bytes: in kPlanes each group has bytes of its own instead, as many in
// all, so that a lane asks for what it needs and for nothing else.

#include <cstdint>
#include <span>

#include "formats/layout/layout.h"

namespace cortiq::formats {

/// The block records of a codec in the order that kPlanes has them; they are as long as the canonical ones.
struct PlaneOrder {
  std::span<const LayoutField> fields;
  void (*to_planes)(const uint8_t* record, uint8_t* ordered);
  void (*from_planes)(const uint8_t* ordered, uint8_t* record);
};

/// q4_k: d and dmin side by side; of each group a byte with its scale and the low two bits of its minimum, four bits
/// with the rest of that, and 16 bytes of nibbles (nibble_order.h, halves).
extern const PlaneOrder kQ4KPlaneOrder;
/// q6_k: the fields of the record; of each group 16 bytes of nibbles (halves) and 8 bytes with the upper two bits,
/// those of weight 16 u + 4 s + j at bits 2 s of byte 4 u + j.
extern const PlaneOrder kQ6KPlaneOrder;

} // namespace cortiq::formats
