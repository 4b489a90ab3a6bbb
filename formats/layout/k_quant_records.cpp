// GGUF's blocks of 256. Q4_K and Q5_K are records as they stand in the file; Q6_K has its scales brought to the front.

#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ4KFields[] = {{"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 3}, {"qs", 16, 4, 32}};
constexpr LayoutField kQ5KFields[] = {
    {"d", 0, 2, 1}, {"dmin", 2, 2, 1}, {"scales", 4, 4, 3}, {"qh", 16, 4, 8}, {"qs", 48, 4, 32}};
constexpr LayoutField kQ6KFields[] = {{"d", 0, 2, 1}, {"scales", 2, 4, 4}, {"ql", 18, 4, 32}, {"qh", 146, 4, 16}};

// File: ql 128, qh 64, scales 16, d 2. Record: d, scales, ql, qh.
void q6_k_to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block + 208, 2);
  std::memcpy(record + 2, block + 192, 16);
  std::memcpy(record + 18, block, 192);
}

void q6_k_from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block, record + 18, 192);
  std::memcpy(block + 192, record + 2, 16);
  std::memcpy(block + 208, record, 2);
}

// Random blocks with d around `d` and dmin around `dmin`.
template <uint32_t kBytes>
void fill_with_minimum(RandomStream& random, uint64_t cols, uint8_t* blocks, float d, float dmin) {
  const HalfRange d_range = scales_around(d);
  const HalfRange dmin_range = scales_around(dmin);
  for (uint64_t b = 0; b < cols / 256; ++b, blocks += kBytes) {
    random.bytes(blocks, kBytes);
    store_u16(blocks, random.half_in(d_range));
    store_u16(blocks + 2, random.half_in(dmin_range));
  }
}

// The divisors are the deviations of the weights at d = 1 for uniform codes, scales and minimums, with dmin at the
// middle of the codes so that weights center on 0.
void fill_q4_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kD = kFillDeviation / 263.0f;
  fill_with_minimum<144>(random, cols, row.plane[0], kD, 7.5f * kD);
}
void fill_q5_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kD = kFillDeviation / 537.0f;
  fill_with_minimum<176>(random, cols, row.plane[0], kD, 15.5f * kD);
}
void fill_q6_k(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange d_range = scales_around(kFillDeviation / 1366.0f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 210) {
    random.bytes(block, 208);
    store_u16(block + 208, random.half_in(d_range));
  }
}

} // namespace

constinit const RecordForm kQ4KForm = {
    .codec = CodecId::kQ4_K,
    .block = 256,
    .block_bytes = 144,
    .fields = kQ4KFields,
    .planes = block_planes<256, 144>,
    .write_records = copy_records<144>,
    .decode = decode_copied,
    .fill_row = fill_q4_k,
};

constinit const RecordForm kQ5KForm = {
    .codec = CodecId::kQ5_K,
    .block = 256,
    .block_bytes = 176,
    .fields = kQ5KFields,
    .planes = block_planes<256, 176>,
    .write_records = copy_records<176>,
    .decode = decode_copied,
    .fill_row = fill_q5_k,
};

constinit const RecordForm kQ6KForm = {
    .codec = CodecId::kQ6_K,
    .block = 256,
    .block_bytes = 210,
    .fields = kQ6KFields,
    .planes = block_planes<256, 210>,
    .write_records = convert_records<210, q6_k_to_record>,
    .decode = decode_converted<210, q6_k_from_record>,
    .fill_row = fill_q6_k,
};

} // namespace cortiq::formats
