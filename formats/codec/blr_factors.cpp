// The two factors of a blr path, as artifacts hold them (low_rank.h); no file has them. Sign bits of all rows, lowest
// first, set = +1, then one f16 scale a row, and in blr_v one f16 scale a column. blr_u: w = +-row scale; blr_v: w =
// (+-row scale) * column scale.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const std::optional<uint64_t> bytes = checked_mul(rows, checked_add(cols / 8, 2));
  return size_or_overflow(codec, rows, cols,
                          checked_add(bytes, codec.column_scales ? checked_mul(cols, 2) : uint64_t{0}));
}

void decode_u_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* bits = payload + row * (cols / 8);
  const float scale = half_to_float(load_u16(payload + rows * (cols / 8) + 2 * row));
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = bits[i / 8] >> (i % 8) & 1 ? scale : -scale;
}

void decode_v_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  decode_u_row(payload, rows, cols, row, out);
  const uint8_t* col_scales = payload + rows * (cols / 8 + 2);
  for (uint64_t i = 0; i < cols; ++i)
    out[i] *= half_to_float(load_u16(col_scales + 2 * i));
}

constexpr Codec factor(CodecId id, std::string_view name, decltype(Codec::decode_row) decode_row) {
  Codec row = cmf_planes(id, name, -1, 8, DotForm::kAffineInt, payload_bytes, decode_row);
  row.cmf_name = "";
  return row;
}

} // namespace

constinit const Codec kBLRUCodec = factor(CodecId::kBLRU, "blr_u", decode_u_row);
constinit const Codec kBLRVCodec = with_column_scales(factor(CodecId::kBLRV, "blr_v", decode_v_row));

} // namespace cortiq::formats
