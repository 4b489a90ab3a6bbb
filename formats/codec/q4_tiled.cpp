// q4_tiled: tiles of 32 weights: one f16 scale, 16 bytes of nibbles (neighbouring weights share a byte, the first in
// the low half). w = (nibble - 8) * scale.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t tiles = cols / 32;
  const uint8_t* tile = payload + row * tiles * 18;
  for (uint64_t t = 0; t < tiles; ++t, tile += 18, out += 32) {
    const float scale = half_to_float(load_u16(tile));
    for (int k = 0; k < 16; ++k) {
      out[2 * k] = static_cast<float>((tile[2 + k] & 15) - 8) * scale;
      out[2 * k + 1] = static_cast<float>((tile[2 + k] >> 4) - 8) * scale;
    }
  }
}

} // namespace

constinit const Codec kQ4TiledCodec = {
    .id = CodecId::kQ4Tiled,
    .name = "q4_tiled",
    .cmf_name = "q4_tiled",
    .gguf_name = "",
    .cmf_code = 11,
    .gguf_code = -1,
    .block = 32,
    .block_bytes = 18,
    .flat = false,
    .needs_matrix = true,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
