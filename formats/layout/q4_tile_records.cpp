// q4_block, q4_tiled: records of a scale and 32 nibbles, brought from pairs to halves.

#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kBlock = 32;
constexpr uint32_t kBytes = 18;
constexpr LayoutField kFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
// Standard deviation of a uniform nibble.
constexpr float kCodeDeviation = 4.61f;

HalfRange fill_scales() {
  return scales_around(kFillDeviation / kCodeDeviation);
}

PlaneSizes q4_block_planes(uint64_t cols) {
  return {.row_bytes = {cols / kBlock * 16, cols / kBlock * 2}};
}

void write_q4_block(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = first; b < first + count; ++b, out += kBytes) {
    std::memcpy(out, row.plane[1] + 2 * b, 2);
    pairs_to_halves(row.plane[0] + 16 * b, out + 2);
  }
}

void decode_q4_block(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t payload[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b) {
    halves_to_pairs(records + kBytes * b + 2, payload + 16 * b);
    std::memcpy(payload + 16 * count + 2 * b, records + kBytes * b, 2);
  }
  codec_info(CodecId::kQ4Block).decode_row(payload, 1, weights, 0, out);
}

void fill_q4_block(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / kBlock * 16);
  for (uint64_t b = 0; b < cols / kBlock; ++b)
    store_u16(row.plane[1] + 2 * b, random.half_in(fill_scales()));
}

void tile_to_record(const uint8_t* tile, uint8_t* record) {
  std::memcpy(record, tile, 2);
  pairs_to_halves(tile + 2, record + 2);
}

void record_to_tile(const uint8_t* record, uint8_t* tile) {
  std::memcpy(tile, record, 2);
  halves_to_pairs(record + 2, tile + 2);
}

void fill_q4_tiled(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  for (uint64_t b = 0; b < cols / kBlock; ++b) {
    random.bytes(row.plane[0] + kBytes * b, kBytes);
    store_u16(row.plane[0] + kBytes * b, random.half_in(fill_scales()));
  }
}

} // namespace

constinit const RecordForm kQ4BlockForm = {
    .codec = CodecId::kQ4Block,
    .block = kBlock,
    .block_bytes = kBytes,
    .fields = kFields,
    .planes = q4_block_planes,
    .write_records = write_q4_block,
    .decode = decode_q4_block,
    .fill_row = fill_q4_block,
};

constinit const RecordForm kQ4TiledForm = {
    .codec = CodecId::kQ4Tiled,
    .block = kBlock,
    .block_bytes = kBytes,
    .fields = kFields,
    .planes = block_planes<kBlock, kBytes>,
    .write_records = convert_records<kBytes, tile_to_record>,
    .decode = decode_converted<kBytes, record_to_tile>,
    .fill_row = fill_q4_tiled,
};

} // namespace cortiq::formats
