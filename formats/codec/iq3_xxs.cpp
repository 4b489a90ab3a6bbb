// IQ3_XXS: f16 d, 64 grid indices, one for 4 weights, then for each 32 weights a word with four 7-bit sign indices (one
// for 8 weights) and, in its top four bits, a scale. w = d * (0.5 + scale) / 2 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int q = 0; q < 64; ++q) {
    const uint32_t signs = load_u32(block + 66 + q / 8 * 4);
    const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
    const uint8_t sign = iq_signs(signs >> (q % 8 / 2 * 7) & 127);
    decode_grid4(iq3_xxs_grid()[block[2 + q]], sign >> (q % 2 * 4), scale, out + 4 * q);
  }
}

} // namespace

constinit const Codec kIQ3XXSCodec =
    gguf_blocks<256, 98, decode_block>(CodecId::kIQ3_XXS, "iq3_xxs", "IQ3_XXS", 18, DotForm::kCodebook);

} // namespace cortiq::formats
