// q8_row: int8 codes of all rows, then one f16 scale a row. w = code * scale.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_mul(rows, checked_add(cols, 2)));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* codes = payload + row * cols;
  const float scale = half_to_float(load_u16(payload + rows * cols + 2 * row));
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(codes[i])) * scale;
}

} // namespace

constinit const Codec kQ8RowCodec =
    cmf_planes(CodecId::kQ8Row, "q8_row", 3, 1, DotForm::kAffineInt, payload_bytes, decode_row);

} // namespace cortiq::formats
