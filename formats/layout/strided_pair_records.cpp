// Codecs whose files keep 2-bit codes of weights 32 apart in one byte: Q2_K, Q3_K, TQ2_0, I2_S. Records have them in
// record order (code_order.h), Q3_K's third bits too, and the scales in front.

#include "formats/layout/code_order.h"
#include "formats/layout/fill_codes.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ2KFields[] = {{"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 4}, {"qs", 20, 4, 16}};
constexpr LayoutField kQ3KFields[] = {{"d", 0, 2, 1}, {"scales", 2, 4, 3}, {"qh", 14, 4, 8}, {"qs", 46, 4, 16}};
constexpr LayoutField kTQ20Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 16}};
constexpr LayoutField kI2SFields[] = {{"qs", 0, 4, 8}};
constexpr uint64_t kI2STrailer = 32;

// File: scales 16, qs 64, d, dmin.
void q2_k_to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block + 80, 4);
  std::memcpy(record + 4, block, 16);
  strided_pairs_to_record<false>(block + 16, record + 20);
  strided_pairs_to_record<false>(block + 48, record + 52);
}
void q2_k_from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block + 80, record, 4);
  std::memcpy(block, record + 4, 16);
  strided_pairs_from_record<false>(record + 20, block + 16);
  strided_pairs_from_record<false>(record + 52, block + 48);
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
// File: hmask 32, qs 64, scales 12, d.
void q3_k_to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block + 108, 2);
  std::memcpy(record + 2, block + 96, 12);
  exchange_third_bits(block, record + 14);
  strided_pairs_to_record<false>(block + 32, record + 46);
  strided_pairs_to_record<false>(block + 64, record + 78);
}
void q3_k_from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block + 108, record, 2);
  std::memcpy(block + 96, record + 2, 12);
  exchange_third_bits(record + 14, block);
  strided_pairs_from_record<false>(record + 46, block + 32);
  strided_pairs_from_record<false>(record + 78, block + 64);
}

// File: qs 64, d.
void tq2_0_to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block + 64, 2);
  strided_pairs_to_record<false>(block, record + 2);
  strided_pairs_to_record<false>(block + 32, record + 34);
}
void tq2_0_from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block + 64, record, 2);
  strided_pairs_from_record<false>(record + 2, block);
  strided_pairs_from_record<false>(record + 34, block + 32);
}

PlaneSizes i2_s_planes(uint64_t cols) {
  return {.row_bytes = {cols / 4}, .shared_bytes = kI2STrailer};
}

void decode_i2_s(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunk / 4];
  uint8_t payload[kDecodeChunk / 4 + kI2STrailer];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    strided_pairs_from_record<true>(records + 32 * b, payload + 32 * b);
  std::memcpy(payload + 32 * count, row.tensor, kI2STrailer);
  codec_info(CodecId::kI2_S).decode_row(payload, 1, weights, 0, out);
}

// The divisors are the deviations of the weights at d = 1; Q2_K's dmin centers them on 0.
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
void fill_q3_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 43.34f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 110) {
    random.bytes(block, 110);
    store_u16(block + 108, random.half_in(scales));
  }
}
void fill_tq2_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 0.7071f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 66) {
    random.bytes(block, 66);
    make_ternary(block, 16);
    store_u16(block + 64, random.half_in(scales));
  }
}

void fill_i2_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / 4);
  make_ternary(row.plane[0], static_cast<uint32_t>(cols / 16));
}
void fill_i2_s_shared(RandomStream&, uint64_t, uint8_t* shared) {
  std::memset(shared, 0, kI2STrailer);
  store_u32(shared, std::bit_cast<uint32_t>(kFillDeviation / 0.7071f));
}

} // namespace

constinit const RecordForm kQ2KForm = {
    .codec = CodecId::kQ2_K,
    .block = 256,
    .block_bytes = 84,
    .fields = kQ2KFields,
    .planes = block_planes<256, 84>,
    .write_records = convert_records<84, q2_k_to_record>,
    .decode = decode_converted<84, q2_k_from_record>,
    .fill_row = fill_q2_k,
};

constinit const RecordForm kQ3KForm = {
    .codec = CodecId::kQ3_K,
    .block = 256,
    .block_bytes = 110,
    .fields = kQ3KFields,
    .planes = block_planes<256, 110>,
    .write_records = convert_records<110, q3_k_to_record>,
    .decode = decode_converted<110, q3_k_from_record>,
    .fill_row = fill_q3_k,
};

constinit const RecordForm kTQ20Form = {
    .codec = CodecId::kTQ2_0,
    .block = 256,
    .block_bytes = 66,
    .fields = kTQ20Fields,
    .planes = block_planes<256, 66>,
    .write_records = convert_records<66, tq2_0_to_record>,
    .decode = decode_converted<66, tq2_0_from_record>,
    .fill_row = fill_tq2_0,
};

constinit const RecordForm kI2SForm = {
    .codec = CodecId::kI2_S,
    .block = 128,
    .block_bytes = 32,
    .fields = kI2SFields,
    .shared_bytes = kI2STrailer,
    .planes = i2_s_planes,
    .write_records = convert_records<32, strided_pairs_to_record<true>>,
    .decode = decode_i2_s,
    .fill_row = fill_i2_s,
    .fill_shared = fill_i2_s_shared,
};

} // namespace cortiq::formats
