// q1g: a plane of sign bits in weight order, lowest first, then a plane of f16 scales, one for 128 weights. A set bit
// is +scale, a clear one -scale.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_mul(checked_mul(rows, cols / 128), 18));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* bits = payload + row * (cols / 8);
  const uint8_t* scales = payload + rows * (cols / 8) + row * (cols / 128) * 2;
  for (uint64_t i = 0; i < cols; ++i) {
    const float scale = half_to_float(load_u16(scales + i / 128 * 2));
    out[i] = bits[i / 8] >> (i % 8) & 1 ? scale : -scale;
  }
}

} // namespace

constinit const Codec kQ1GCodec =
    cmf_planes(CodecId::kQ1G, "q1g", 20, 128, DotForm::kAffineInt, payload_bytes, decode_row);

} // namespace cortiq::formats
