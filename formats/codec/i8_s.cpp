// I8_S: int8 codes, and behind the whole tensor an f32 scale and 28 bytes of padding. w = code * scale.

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
  return size_or_overflow(codec, rows, cols, checked_add(checked_mul(rows, cols), kTensorScaleBytes));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const float scale = std::bit_cast<float>(load_u32(payload + rows * cols));
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(payload[row * cols + i])) * scale;
}

} // namespace

constinit const Codec kI8SCodec =
    gguf_only(CodecId::kI8_S, "i8_s", "I8_S", 37, 1, DotForm::kAffineInt, payload_bytes, decode_row);

} // namespace cortiq::formats
