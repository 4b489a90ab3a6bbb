// q1s: the tiles of q1, then a count and the weights that the signs miss: (u32 index into the whole tensor, f16 value)
// each, which replace what the tiles say. The last of several entries for a weight counts; an index past the end is
// ignored where strictness is not asked for.

#include "formats/checked_math.h"
#include "formats/codec/block_decode.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/overlay.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/q1_tiles.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols,
                          checked_add(checked_mul(checked_mul(rows, cols / 32), 6), kQ1SOverlayHead));
}

Status validate(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, payload_bytes(codec, rows, cols));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, payload.size(), least, rows, cols));
  return check_q1s_overlay(payload.subspan(least - kQ1SOverlayHead), rows, cols, strict);
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  decode_blocks<32, 6, decode_q1_tile>(payload, rows, cols, row, out);
  const uint8_t* overlay = payload + rows * (cols / 32) * 6;
  const uint32_t count = load_u32(overlay);
  const uint64_t first = row * cols;
  for (uint32_t e = 0; e < count; ++e) {
    const Q1SEntry entry = q1s_entry(overlay, e);
    if (entry.index - first < cols) // wraps for indices before the row
      out[entry.index - first] = half_to_float(entry.value);
  }
}

} // namespace

constinit const Codec kQ1SCodec = of_variable_size(
    cmf_planes(CodecId::kQ1S, "q1s", 13, 32, DotForm::kAffineInt, payload_bytes, decode_row), validate);

} // namespace cortiq::formats
