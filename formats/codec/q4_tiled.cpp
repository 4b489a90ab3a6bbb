// q4_tiled: tiles of 32 weights: one f16 scale, 16 bytes of nibbles (neighbouring weights share a byte, the first in
// the low half). w = (nibble - 8) * scale.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

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

constinit const Codec kQ4TiledCodec = cmf_blocks<32, 18, decode_block>(CodecId::kQ4Tiled, "q4_tiled", 11);

} // namespace cortiq::formats
