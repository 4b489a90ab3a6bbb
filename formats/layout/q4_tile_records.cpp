// q4_block, q4_tiled: records of a scale and 32 nibbles, brought from pairs to halves.

#include "formats/layout/fill_blocks.h"
#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
// Standard deviation of a uniform nibble.
constexpr float kCodeDeviation = 4.61f;

void tile_to_record(const uint8_t* tile, uint8_t* record) {
  std::memcpy(record, tile, 2);
  pairs_to_halves(tile + 2, record + 2);
}
void record_to_tile(const uint8_t* record, uint8_t* tile) {
  std::memcpy(tile, record, 2);
  halves_to_pairs(record + 2, tile + 2);
}

} // namespace

constinit const RecordForm kQ4BlockForm = joined_form<32, 2, 16, pairs_to_halves, halves_to_pairs>(
    CodecId::kQ4Block, kFields, fill_split<32, 16, kCodeDeviation>);
constinit const RecordForm kQ4TiledForm = converted_form<32, 18, tile_to_record, record_to_tile>(
    CodecId::kQ4Tiled, kFields, fill_scaled<32, 18, 0, kCodeDeviation>);

} // namespace cortiq::formats
