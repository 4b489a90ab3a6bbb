// q1t: tiles of 32 weights: f16 scale, 7 bytes of base-3 digits (five a byte, the lowest first): 0, +scale, -scale.
// Then a table of R + 1 entry counts and the weights that the tiles miss, row by row: (u16 column, f16 value) each,
// which replace what the tiles say.

#include <string>

#include "formats/checked_math.h"
#include "formats/codec/block_decode.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/overlay.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"
#include "formats/codec/ternary.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kMaxCols = 65536; // columns of entries have 16 bits

StatusOr<uint64_t> tile_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const std::optional<uint64_t> size = checked_mul(checked_mul(rows, cols / 32), 9);
  if (size && cols > kMaxCols)
    return invalid("has " + std::to_string(cols) + " columns, but q1t takes at most " + std::to_string(kMaxCols));
  return size_or_overflow(codec, rows, cols, size);
}

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t tiles, tile_bytes(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_add(tiles, q1t_table_bytes(rows)));
}

Status validate(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, payload_bytes(codec, rows, cols));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, payload.size(), least, rows, cols));
  return check_q1t_overlay(payload.subspan(least - *q1t_table_bytes(rows)), rows, cols);
}

void decode_tile(const uint8_t* tile, float* out) {
  const float scale = half_to_float(load_u16(tile));
  const float levels[3] = {0.0f, scale, -scale};
  for (int k = 0; k < 32; ++k)
    out[k] = levels[q1t_digit(tile[2 + k / 5], k % 5)];
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  decode_blocks<32, 9, decode_tile>(payload, rows, cols, row, out);
  apply_q1t_overlay(payload + rows * (cols / 32) * 9, rows, row, out);
}

} // namespace

constinit const Codec kQ1TCodec = of_variable_size(
    cmf_planes(CodecId::kQ1T, "q1t", 14, 32, DotForm::kAffineInt, payload_bytes, decode_row), validate);

} // namespace cortiq::formats
