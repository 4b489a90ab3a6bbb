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

constinit const RecordForm kF32Form = copied_form<1, 4>(CodecId::kF32, kOneDword, fill_f32);
constinit const RecordForm kF16Form = copied_form<1, 2>(CodecId::kF16, kOneWord, fill_f16);
constinit const RecordForm kBF16Form = copied_form<1, 2>(CodecId::kBF16, kOneWord, fill_bf16);

} // namespace cortiq::formats
