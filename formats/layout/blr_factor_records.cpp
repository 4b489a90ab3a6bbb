// blr_u, blr_v: the row's scale in the header, records of 32 sign bits in record order (code_order.h); the last record
// is padded with zero bits. The column scales of blr_v are the tensor part.

#include <algorithm>

#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kBlock = 32;
constexpr uint32_t kBytes = 4;
constexpr LayoutField kFields[] = {{"qs", 0, 4, 1}};

PlaneSizes planes_u(uint64_t cols) {
  return {.row_bytes = {cols / 8, 2}};
}
PlaneSizes planes_v(uint64_t cols) {
  return {.row_bytes = {cols / 8, 2}, .shared_bytes = 2 * cols};
}

void write_records(const RowPlanes& row, uint64_t cols, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = first; b < first + count; ++b, out += kBytes) {
    uint8_t bits[kBytes] = {};
    std::memcpy(bits, row.plane[0] + kBytes * b, std::min<uint64_t>(kBytes, cols / 8 - kBytes * b));
    convert_dwords<bits_to_record>(bits, out, 1);
  }
}

/// The file's order of the bits of `weights` weights, then the row's scale; returns where that ends.
uint8_t* read_row(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, uint8_t* out) {
  uint8_t records[kDecodeChunk / 8];
  row.read_records(first, count, records);
  convert_dwords<bits_from_record>(records, out, static_cast<uint32_t>(count));
  row.read_header(0, 2, 1, out + weights / 8);
  return out + weights / 8 + 2;
}

void decode_u(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t payload[kDecodeChunk / 8 + 2];
  read_row(row, first, count, weights, payload);
  codec_info(CodecId::kBLRU).decode_row(payload, 1, weights, 0, out);
}

void decode_v(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t payload[kDecodeChunk / 8 + 2 + 2 * kDecodeChunk];
  uint8_t* columns = read_row(row, first, count, weights, payload);
  std::memcpy(columns, row.tensor + 2 * kBlock * first, 2 * weights);
  codec_info(CodecId::kBLRV).decode_row(payload, 1, weights, 0, out);
}

void fill_row(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / 8);
  store_u16(row.plane[1], random.half_in(scales_around(kFillDeviation)));
}

constexpr RecordForm factor_form(CodecId codec, decltype(RecordForm::planes) planes,
                                 decltype(RecordForm::decode) decode) {
  return with_row_scale(block_form<kBlock, kBytes>(codec, kFields, write_records, decode, fill_row), planes);
}

} // namespace

constinit const RecordForm kBLRUForm = factor_form(CodecId::kBLRU, planes_u, decode_u);
constinit const RecordForm kBLRVForm = with_column_scales(factor_form(CodecId::kBLRV, planes_v, decode_v));

} // namespace cortiq::formats
