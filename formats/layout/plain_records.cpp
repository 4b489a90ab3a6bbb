// f32, f16, bf16: a record is one number.

#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

// Uniform in (-a, a) has the standard deviation a / sqrt(3).
constexpr float kAmplitude = kFillDeviation * 1.7320508f;

void fill_f32(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  for (uint64_t i = 0; i < cols; ++i)
    store_u32(row.plane[0] + 4 * i, std::bit_cast<uint32_t>(random.symmetric() * kAmplitude));
}

void fill_f16(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  for (uint64_t i = 0; i < cols; ++i)
    store_u16(row.plane[0] + 2 * i, float_to_half(random.symmetric() * kAmplitude));
}

void fill_bf16(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  for (uint64_t i = 0; i < cols; ++i)
    store_u16(row.plane[0] + 2 * i,
              static_cast<uint16_t>(std::bit_cast<uint32_t>(random.symmetric() * kAmplitude) >> 16));
}

constexpr LayoutField kOneDword[] = {{"w", 0, 4, 1}};
constexpr LayoutField kOneWord[] = {{"w", 0, 2, 1}};

} // namespace

constinit const RecordForm kF32Form = {
    .codec = CodecId::kF32,
    .block = 1,
    .block_bytes = 4,
    .fields = kOneDword,
    .planes = block_planes<1, 4>,
    .write_records = copy_records<4>,
    .decode = decode_copied,
    .fill_row = fill_f32,
};

constinit const RecordForm kF16Form = {
    .codec = CodecId::kF16,
    .block = 1,
    .block_bytes = 2,
    .fields = kOneWord,
    .planes = block_planes<1, 2>,
    .write_records = copy_records<2>,
    .decode = decode_copied,
    .fill_row = fill_f16,
};

constinit const RecordForm kBF16Form = {
    .codec = CodecId::kBF16,
    .block = 1,
    .block_bytes = 2,
    .fields = kOneWord,
    .planes = block_planes<1, 2>,
    .write_records = copy_records<2>,
    .decode = decode_copied,
    .fill_row = fill_bf16,
};

} // namespace cortiq::formats
