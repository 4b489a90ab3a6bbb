// I2_S: 2-bit codes, 128 weights in 32 bytes (a byte has weights 32 apart, the first in its highest bits), and behind
// the whole tensor an f32 scale and 28 bytes of padding. w = (code - 1) * scale.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"
#include "formats/codec/tensor_scale.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_add(checked_mul(rows, cols / 4), kTensorScaleBytes));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const float scale = std::bit_cast<float>(load_u32(payload + rows * (cols / 4)));
  const uint8_t* codes = payload + row * (cols / 4);
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = static_cast<float>((codes[i / 128 * 32 + i % 32] >> (6 - i % 128 / 32 * 2) & 3) - 1) * scale;
}

} // namespace

constinit const Codec kI2SCodec =
    gguf_only(CodecId::kI2_S, "i2_s", "I2_S", 36, 128, DotForm::kAffineInt, payload_bytes, decode_row);

} // namespace cortiq::formats
