// GGUF's blocks of 256. Q4_K and Q5_K are records as they stand in the file; Q6_K has its scales brought to the front.

#include "formats/layout/byte_moves.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ4KFields[] = {{"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 3}, {"qs", 16, 4, 32}};
constexpr LayoutField kQ5KFields[] = {
    {"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 3}, {"qh", 16, 4, 8}, {"qs", 48, 4, 32}};
constexpr LayoutField kQ6KFields[] = {{"d", 0, 2, 1}, {"scales", 2, 4, 4}, {"ql", 18, 4, 32}, {"qh", 146, 4, 16}};

// File: ql 128, qh 64, scales 16, d 2.
constexpr Move kQ6KMoves[] = {{208, 0, 2}, {192, 2, 16}, {0, 18, 192}};

// The random bytes end before d.
void fill_q6_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange d_range = scales_around(kFillDeviation / 1366.0f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 210) {
    random.bytes(block, 208);
    store_u16(block + 208, random.half_in(d_range));
  }
}

} // namespace

// The deviations of the weights at d = 1 are those of uniform codes, scales and minimums.
constinit const RecordForm kQ4KForm = in_plane_order(
    copied_form<256, 144>(CodecId::kQ4_K, kQ4KFields, fill_with_minimum<256, 144, 263.0f, 7.5f, 0>), kQ4KPlaneOrder);
constinit const RecordForm kQ5KForm =
    copied_form<256, 176>(CodecId::kQ5_K, kQ5KFields, fill_with_minimum<256, 176, 537.0f, 15.5f, 0>);
constinit const RecordForm kQ6KForm =
    in_plane_order(converted_form<256, 210, move_to_record<kQ6KMoves>, move_from_record<kQ6KMoves>>(
                       CodecId::kQ6_K, kQ6KFields, fill_q6_k),
                   kQ6KPlaneOrder);

} // namespace cortiq::formats
