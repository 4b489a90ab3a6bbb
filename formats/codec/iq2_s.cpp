// IQ2_S: f16 d, 32 low bytes of grid indices, one for 8 weights, 32 sign bytes, 8 bytes of two high index bits each,
// then 4-bit scales, one for 16 weights. w = d * (0.5 + scale) / 4 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int v = 0; v < 32; ++v) {
    const int index = block[2 + v] | (block[66 + v / 4] >> (v % 4 * 2) & 3) << 8;
    const int sub = block[74 + v / 4] >> (v % 4 / 2 * 4) & 15;
    const float scale = d * (0.5f + static_cast<float>(sub)) * 0.25f;
    decode_grid8(iq2_s_grid()[index], block[34 + v], scale, out + 8 * v);
  }
}

} // namespace

constinit const Codec kIQ2SCodec =
    gguf_blocks<256, 82, decode_block>(CodecId::kIQ2_S, "iq2_s", "IQ2_S", 22, DotForm::kCodebook);

} // namespace cortiq::formats
