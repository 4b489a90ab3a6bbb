#pragma once

// Random payloads of the common kinds of blocks.

#include <bit>

#include "formats/codec/tensor_scale.h"
#include "formats/layout/fill_codes.h"
#include "formats/layout/record_form.h"

namespace cortiq::formats {

/// Makes codes that an encoder could have written of a block's random bytes: ternary ones in kDwords dwords from byte
/// kAt on.
template <uint32_t kAt, uint32_t kDwords>
void ternary_codes(uint8_t* block) {
  make_ternary(block + kAt, kDwords);
}

/// RecordForm::fill_row of blocks with an f16 scale at byte kScaleAt. kDeviation is that of the weights at a scale of
/// 1. kFinish, where there is one, is ternary_codes.
template <uint32_t kBlock, uint32_t kBytes, uint32_t kScaleAt, float kDeviation, auto kFinish = nullptr>
void fill_scaled(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / kDeviation);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / kBlock; ++b, block += kBytes) {
    random.bytes(block, kBytes);
    if constexpr (kFinish != nullptr)
      kFinish(block);
    store_u16(block + kScaleAt, random.half_in(scales));
  }
}

/// The same of blocks that start with an f16 scale and an f16 minimum, of kSign, which the middle of the codes times
/// the scale makes up for, so that weights center on 0.
template <uint32_t kBlock, uint32_t kBytes, float kDeviation, float kMiddle, uint16_t kSign>
void fill_with_minimum(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kScale = kFillDeviation / kDeviation;
  const HalfRange scales = scales_around(kScale);
  const HalfRange minimums = scales_around(kMiddle * kScale);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / kBlock; ++b, block += kBytes) {
    random.bytes(block, kBytes);
    store_u16(block, random.half_in(scales));
    store_u16(block + 2, random.half_in(minimums) | kSign);
  }
}

/// The same of two planes: kCodes bytes of codes a block, and an f16 scale.
template <uint32_t kBlock, uint32_t kCodes, float kDeviation>
void fill_split(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const uint64_t blocks = cols / kBlock;
  random.bytes(row.plane[0], blocks * kCodes);
  for (uint64_t b = 0; b < blocks; ++b)
    store_u16(row.plane[1] + 2 * b, random.half_in(scales_around(kFillDeviation / kDeviation)));
}

/// RecordForm::fill_shared of an f16 scale a column.
inline void fill_column_scales(RandomStream& random, uint64_t cols, uint8_t* shared) {
  for (uint64_t i = 0; i < cols; ++i)
    store_u16(shared + 2 * i, random.half_in(scales_around(1.0f)));
}

/// `form` with an f16 scale a column in the tensor part.
constexpr RecordForm with_column_scales(RecordForm form) {
  form.shared_bytes_per_col = 2;
  form.fill_shared = fill_column_scales;
  return form;
}

/// RecordForm::fill_shared of one f32 scale for the tensor and padding (codec/tensor_scale.h).
template <float kDeviation>
void fill_tensor_scale(RandomStream&, uint64_t, uint8_t* shared) {
  std::memset(shared, 0, kTensorScaleBytes);
  store_u32(shared, std::bit_cast<uint32_t>(kFillDeviation / kDeviation));
}

} // namespace cortiq::formats
