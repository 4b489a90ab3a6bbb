// q8_row, q8_2f: the row's scale in the header, records of four codes; the last record is padded with zero codes. The
// column scales of q8_2f are the tensor part.

#include <algorithm>

#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kBlock = 4;
constexpr LayoutField kFields[] = {{"q", 0, 4, 1}};
// Standard deviation of a uniform int8.
constexpr float kCodeDeviation = 73.9f;

PlaneSizes planes(uint64_t cols) {
  return {.row_bytes = {cols, 2}};
}
PlaneSizes planes_2f(uint64_t cols) {
  return {.row_bytes = {cols, 2}, .shared_bytes = 2 * cols};
}

void write_records(const RowPlanes& row, uint64_t cols, uint64_t first, uint64_t count, uint8_t* out) {
  const uint64_t codes = std::min(kBlock * count, cols - kBlock * first);
  std::memcpy(out, row.plane[0] + kBlock * first, codes);
  std::memset(out + codes, 0, kBlock * count - codes);
}

void decode(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t payload[kDecodeChunk + 2]; // codes, row scale
  row.read_records(first, count, payload);
  row.read_header(0, 2, 1, payload + weights);
  codec_info(CodecId::kQ8Row).decode_row(payload, 1, weights, 0, out);
}

void decode_2f(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t payload[kDecodeChunk + 2 + 2 * kDecodeChunk]; // codes, row scale, column scales
  row.read_records(first, count, payload);
  row.read_header(0, 2, 1, payload + weights);
  std::memcpy(payload + weights + 2, row.tensor + 2 * kBlock * first, 2 * weights);
  codec_info(CodecId::kQ82F).decode_row(payload, 1, weights, 0, out);
}

void fill_row(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols);
  store_u16(row.plane[1], random.half_in(scales_around(kFillDeviation / kCodeDeviation)));
}

constexpr RecordForm row_form(CodecId codec, decltype(RecordForm::planes) planes, decltype(RecordForm::decode) decode) {
  return with_row_scale(block_form<kBlock, kBlock>(codec, kFields, write_records, decode, fill_row), planes);
}

} // namespace

constinit const RecordForm kQ8RowForm = row_form(CodecId::kQ8Row, planes, decode);
constinit const RecordForm kQ82FForm = with_column_scales(row_form(CodecId::kQ82F, planes_2f, decode_2f));

} // namespace cortiq::formats
