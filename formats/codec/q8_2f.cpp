// q8_2f: int8 codes of all rows, one f16 scale a row, one f16 scale a column. w = (code * row scale) * column scale, in
// this order, because both products round.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols,
                          checked_add(checked_mul(rows, checked_add(cols, 2)), checked_mul(cols, 2)));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* codes = payload + row * cols;
  const uint8_t* row_scales = payload + rows * cols;
  const uint8_t* col_scales = row_scales + 2 * rows;
  const float scale = half_to_float(load_u16(row_scales + 2 * row));
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = (static_cast<float>(static_cast<int8_t>(codes[i])) * scale) * half_to_float(load_u16(col_scales + 2 * i));
}

} // namespace

constinit const Codec kQ82FCodec =
    with_column_scales(cmf_planes(CodecId::kQ82F, "q8_2f", 9, 1, DotForm::kAffineInt, payload_bytes, decode_row));

} // namespace cortiq::formats
