// IQ2_XS: f16 d, 32 words of a 9-bit grid index and a 7-bit sign index, one for 8 weights, then 4-bit scales, one
// for 16. w = d * (0.5 + scale) / 4 * magnitude * sign.

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
    const uint32_t word = load_u16(block + 2 + 2 * v);
    const int sub = block[66 + v / 4] >> (v % 4 / 2 * 4) & 15;
    const float scale = d * (0.5f + static_cast<float>(sub)) * 0.25f;
    decode_grid8(iq2_xs_grid()[word & 511], iq_signs(word >> 9), scale, out + 8 * v);
  }
}

} // namespace

constinit const Codec kIQ2XSCodec =
    gguf_blocks<256, 74, decode_block>(CodecId::kIQ2_XS, "iq2_xs", "IQ2_XS", 17, DotForm::kCodebook);

} // namespace cortiq::formats
