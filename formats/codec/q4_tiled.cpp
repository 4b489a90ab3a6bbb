// q4_tiled: tiles of 32 weights: one f16 scale, 16 bytes of nibbles (neighbouring weights share a byte, the first in
// the low half). w = (nibble - 8) * scale.

#include "formats/codec/block_decode.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* tile, float* out) {
  const float scale = half_to_float(load_u16(tile));
  for (int k = 0; k < 16; ++k) {
    out[2 * k] = static_cast<float>((tile[2 + k] & 15) - 8) * scale;
    out[2 * k + 1] = static_cast<float>((tile[2 + k] >> 4) - 8) * scale;
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
    .decode_row = decode_blocks<32, 18, decode_block>,
};

} // namespace cortiq::formats
