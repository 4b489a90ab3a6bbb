// Codecs of int8 codes under an f32 scale: Q8_K, FV5B, I8_S. Q8_K loses its sums of codes, which say nothing new. I8_S
// has one scale, in the tensor part.

#include <algorithm>

#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kFields[] = {{"d", 0, 4, 1}, {"q", 4, 4, 64}};
constexpr LayoutField kI8SFields[] = {{"q", 0, 4, 1}};
constexpr uint32_t kQ8KBytes = 292;
constexpr uint32_t kRecordBytes = 260;
// Standard deviation of a uniform int8.
constexpr float kCodeDeviation = 73.9f;

void write_q8_k(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = 0; b < count; ++b)
    std::memcpy(out + kRecordBytes * b, row.plane[0] + kQ8KBytes * (first + b), kRecordBytes);
}

void decode_q8_k(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t blocks[kDecodeChunk / 256 * kQ8KBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    std::memcpy(blocks + kQ8KBytes * b, records + kRecordBytes * b, kRecordBytes);
  codec_info(CodecId::kQ8_K).decode_row(blocks, 1, weights, 0, out);
}

PlaneSizes i8_s_planes(uint64_t cols) {
  return {.row_bytes = {cols}, .shared_bytes = kTensorScaleBytes};
}

void write_i8_s(const RowPlanes& row, uint64_t cols, uint64_t first, uint64_t count, uint8_t* out) {
  const uint64_t codes = std::min(4 * count, cols - 4 * first);
  std::memcpy(out, row.plane[0] + 4 * first, codes);
  std::memset(out + codes, 0, 4 * count - codes);
}

void decode_i8_s(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t payload[kDecodeChunk + kTensorScaleBytes];
  row.read_records(first, count, payload);
  std::memcpy(payload + weights, row.tensor, kTensorScaleBytes);
  codec_info(CodecId::kI8_S).decode_row(payload, 1, weights, 0, out);
}

void fill_block(RandomStream& random, uint8_t* block) {
  store_u32(block, std::bit_cast<uint32_t>(random.around(kFillDeviation / kCodeDeviation)));
  random.bytes(block + 4, 256);
}

void fill_q8_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += kQ8KBytes) {
    fill_block(random, block);
    for (int k = 0; k < 16; ++k) {
      int sum = 0;
      for (int i = 0; i < 16; ++i)
        sum += static_cast<int8_t>(block[4 + 16 * k + i]);
      store_u16(block + kRecordBytes + 2 * k, static_cast<uint16_t>(sum));
    }
  }
}

void fill_fv5b(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  for (uint64_t b = 0; b < cols / 256; ++b)
    fill_block(random, row.plane[0] + kRecordBytes * b);
}

void fill_i8_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols);
}

} // namespace

constinit const RecordForm kQ8KForm = {
    .codec = CodecId::kQ8_K,
    .block = 256,
    .block_bytes = kRecordBytes,
    .fields = kFields,
    .planes = block_planes<256, kQ8KBytes>,
    .write_records = write_q8_k,
    .decode = decode_q8_k,
    .fill_row = fill_q8_k,
};

constinit const RecordForm kFV5BForm = copied_form<256, kRecordBytes>(CodecId::kFV5B, kFields, fill_fv5b);

constinit const RecordForm kI8SForm = {
    .codec = CodecId::kI8_S,
    .block = 4,
    .block_bytes = 4,
    .fields = kI8SFields,
    .shared_bytes = kTensorScaleBytes,
    .planes = i8_s_planes,
    .write_records = write_i8_s,
    .decode = decode_i8_s,
    .fill_row = fill_i8_s,
    .fill_shared = fill_tensor_scale<kCodeDeviation>,
};

} // namespace cortiq::formats
