// q4tp: planes of nibbles (16 bytes a tile of 32, order as in q4_block), of row parameters (f16 lo, f16 step) and of
// 5-bit rung codes (one a tile, a row padded to whole bytes, lowest bits first). w = (nibble - 8) * rung, the rungs
// being 2^lo * 2^step * 2^step … (q4tp_ladder.h).

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/q4tp_ladder.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const uint64_t tiles = cols / 32;
  const std::optional<uint64_t> code_bits = checked_mul(tiles, 5);
  if (!code_bits)
    return size_or_overflow(codec, rows, cols, code_bits);
  const std::optional<uint64_t> row_bytes = checked_add(checked_mul(tiles, 16), 4 + ceil_div(*code_bits, 8));
  return size_or_overflow(codec, rows, cols, checked_mul(row_bytes, rows));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t tiles = cols / 32;
  const uint64_t code_stride = ceil_div(5 * tiles, 8);
  const uint8_t* nibbles = payload + row * tiles * 16;
  const uint8_t* params = payload + rows * tiles * 16 + row * 4;
  const uint8_t* codes = payload + rows * (tiles * 16 + 4) + row * code_stride;
  const Q4TPLadder ladder(q4tp_row_exp2(load_u16(params)), q4tp_row_exp2(load_u16(params + 2)));
  for (uint64_t t = 0; t < tiles; ++t, nibbles += 16, out += 32) {
    const uint64_t byte = 5 * t / 8;
    const uint32_t next = byte + 1 < code_stride ? codes[byte + 1] : 0;
    const float scale = ladder.rung[(codes[byte] | next << 8) >> (5 * t % 8) & 31];
    for (int k = 0; k < 16; ++k) {
      out[2 * k] = static_cast<float>((nibbles[k] & 15) - 8) * scale;
      out[2 * k + 1] = static_cast<float>((nibbles[k] >> 4) - 8) * scale;
    }
  }
}

} // namespace

constinit const Codec kQ4TPCodec = {
    .id = CodecId::kQ4TP,
    .name = "q4tp",
    .cmf_name = "q4tp",
    .gguf_name = "",
    .cmf_code = 15,
    .gguf_code = -1,
    .block = 32,
    .block_bytes = 0,
    .flat = false,
    .needs_matrix = true,
    .form = DotForm::kAffineInt,
    .payload_bytes = payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
