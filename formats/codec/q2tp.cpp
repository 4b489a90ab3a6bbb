// q2tp: as q4tp (planes of codes, row parameters, 5-bit rung codes) with 2-bit codes, 8 bytes a tile of 32 weights,
// four neighbours a byte. Rung 0 is exactly 0, rung c the rung c - 1 of q4tp's ladder. w = (code - 1.5) * rung; in
// tensors that a Prism record lists as affine, which the payload does not show, w = (code - 1) * rung.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/q4tp_ladder.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const uint64_t tiles = cols / 32; // below 2^59, so that the bits of its codes fit 64
  const std::optional<uint64_t> row_bytes = checked_add(checked_mul(tiles, 8), 4 + ceil_div(5 * tiles, 8));
  return size_or_overflow(codec, rows, cols, checked_mul(row_bytes, rows));
}

void decode(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float zero, float* out) {
  const uint64_t tiles = cols / 32;
  const uint64_t code_stride = ceil_div(5 * tiles, 8);
  const uint8_t* codes = payload + row * tiles * 8;
  const uint8_t* params = payload + rows * tiles * 8 + row * 4;
  const uint8_t* rungs = payload + rows * (tiles * 8 + 4) + row * code_stride;
  const Q4TPLadder ladder(q4tp_exp2(load_u16(params)), q4tp_exp2(load_u16(params + 2)));
  for (uint64_t t = 0; t < tiles; ++t, codes += 8, out += 32) {
    const uint64_t byte = 5 * t / 8;
    const uint32_t next = byte + 1 < code_stride ? rungs[byte + 1] : 0;
    const uint32_t rung = (rungs[byte] | next << 8) >> (5 * t % 8) & 31;
    const float scale = rung == 0 ? 0.0f : ladder.rung[rung - 1];
    for (int i = 0; i < 32; ++i)
      out[i] = (static_cast<float>(codes[i / 4] >> (i % 4 * 2) & 3) - zero) * scale;
  }
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  decode(payload, rows, cols, row, 1.5f, out);
}

void decode_row_affine(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  decode(payload, rows, cols, row, 1.0f, out);
}

} // namespace

constinit const Codec kQ2TPCodec = {
    .id = CodecId::kQ2TP,
    .name = "q2tp",
    .cmf_name = "q2tp",
    .gguf_name = "",
    .cmf_code = 16,
    .gguf_code = -1,
    .block = 32,
    .block_bytes = 0,
    .flat = false,
    .needs_matrix = true,
    .form = DotForm::kAffineInt,
    .payload_bytes = payload_bytes,
    .decode_row = decode_row,
};

constinit const Codec kQ2TPAffineCodec = {
    .id = CodecId::kQ2TPAffine,
    .name = "q2tp_affine",
    .cmf_name = "q2tp_affine",
    .gguf_name = "",
    .cmf_code = 16,
    .gguf_code = -1,
    .block = 32,
    .block_bytes = 0,
    .flat = false,
    .needs_matrix = true,
    .form = DotForm::kAffineInt,
    .payload_bytes = payload_bytes,
    .decode_row = decode_row_affine,
};

} // namespace cortiq::formats
