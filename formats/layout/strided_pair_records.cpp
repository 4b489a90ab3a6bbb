// Codecs whose files keep 2-bit codes of weights 32 apart in one byte: Q2_K, Q3_K, TQ2_0, I2_S. Records have them in
// record order (code_order.h), Q3_K's third bits too, and the scales in front.

#include "formats/layout/byte_moves.h"
#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ2KFields[] = {{"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 4}, {"qs", 20, 4, 16}};
constexpr LayoutField kQ3KFields[] = {{"d", 0, 2, 1}, {"scales", 2, 4, 3}, {"qh", 14, 4, 8}, {"qs", 46, 4, 16}};
constexpr LayoutField kTQ20Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 16}};
constexpr LayoutField kI2SFields[] = {{"qs", 0, 4, 8}};

// Files: Q2_K scales 16, qs 64, d, dmin; Q3_K hmask 32, qs 64, scales 12, d; TQ2_0 qs 64, d.
constexpr Move kQ2KMoves[] = {{80, 0, 4}, {0, 4, 16}};
constexpr Move kQ3KMoves[] = {{108, 0, 2}, {96, 2, 12}};
constexpr Move kTQ20Moves[] = {{64, 0, 2}};

/// Heads as kMoves says, codes from byte kBlockAt of the block, which stand at kRecordAt in the record.
template <auto& kMoves, uint32_t kBlockAt, uint32_t kRecordAt>
void to_record(const uint8_t* block, uint8_t* record) {
  move_to_record<kMoves>(block, record);
  for (uint32_t half = 0; half < 64; half += 32)
    strided_pairs_to_record<false>(block + kBlockAt + half, record + kRecordAt + half);
}
template <auto& kMoves, uint32_t kBlockAt, uint32_t kRecordAt>
void from_record(const uint8_t* record, uint8_t* block) {
  move_from_record<kMoves>(record, block);
  for (uint32_t half = 0; half < 64; half += 32)
    strided_pairs_from_record<false>(record + kRecordAt + half, block + kBlockAt + half);
}
template <uint32_t kBytes, auto& kMoves, uint32_t kBlockAt, uint32_t kRecordAt>
constexpr RecordForm strided_form(CodecId codec, std::span<const LayoutField> fields,
                                  decltype(RecordForm::fill_row) fill) {
  return converted_form<256, kBytes, to_record<kMoves, kBlockAt, kRecordAt>, from_record<kMoves, kBlockAt, kRecordAt>>(
      codec, fields, fill);
}

// Q3_K's third bits: bit s of byte l belongs to weight 32s + l, four neighbours being four bytes of a dword.
// The exchange of s and the dword's place is its own inverse.
void exchange_third_bits(const uint8_t* mask, uint8_t* record) {
  for (int s = 0; s < 8; ++s) {
    uint32_t dword = 0;
    for (int q = 0; q < 8; ++q)
      dword |= (load_u32(mask + 4 * q) >> s & 0x01010101u) << q;
    store_u32(record + 4 * s, dword);
  }
}
void q3_k_to_record(const uint8_t* block, uint8_t* record) {
  to_record<kQ3KMoves, 32, 46>(block, record);
  exchange_third_bits(block, record + 14);
}
void q3_k_from_record(const uint8_t* record, uint8_t* block) {
  from_record<kQ3KMoves, 32, 46>(record, block);
  exchange_third_bits(record + 14, block);
}

PlaneSizes i2_s_planes(uint64_t cols) {
  return {.row_bytes = {cols / 4}, .shared_bytes = kTensorScaleBytes};
}

void decode_i2_s(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunk / 4];
  uint8_t payload[kDecodeChunk / 4 + kTensorScaleBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    strided_pairs_from_record<true>(records + 32 * b, payload + 32 * b);
  std::memcpy(payload + 32 * count, row.tensor, kTensorScaleBytes);
  codec_info(CodecId::kI2_S).decode_row(payload, 1, weights, 0, out);
}

// The random bytes end before d; dmin centers the weights on 0.
void fill_q2_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kD = kFillDeviation / 13.87f;
  const HalfRange d = scales_around(kD);
  const HalfRange dmin = scales_around(1.5f * kD);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 84) {
    random.bytes(block, 80);
    store_u16(block + 80, random.half_in(d));
    store_u16(block + 82, random.half_in(dmin));
  }
}
void fill_i2_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / 4);
  make_ternary(row.plane[0], static_cast<uint32_t>(cols / 16));
}
} // namespace

constinit const RecordForm kQ2KForm = strided_form<84, kQ2KMoves, 16, 20>(CodecId::kQ2_K, kQ2KFields, fill_q2_k);
constinit const RecordForm kQ3KForm = converted_form<256, 110, q3_k_to_record, q3_k_from_record>(
    CodecId::kQ3_K, kQ3KFields, fill_scaled<256, 110, 108, 43.34f>);
constinit const RecordForm kTQ20Form = strided_form<66, kTQ20Moves, 0, 2>(
    CodecId::kTQ2_0, kTQ20Fields, fill_scaled<256, 66, 64, 0.7071f, ternary_codes<0, 16>>);

constinit const RecordForm kI2SForm = {
    .codec = CodecId::kI2_S,
    .block = 128,
    .block_bytes = 32,
    .fields = kI2SFields,
    .shared_bytes = kTensorScaleBytes,
    .planes = i2_s_planes,
    .write_records = convert_records<32, strided_pairs_to_record<true>>,
    .decode = decode_i2_s,
    .fill_row = fill_i2_s,
    .fill_shared = fill_tensor_scale<0.7071f>,
};

} // namespace cortiq::formats
