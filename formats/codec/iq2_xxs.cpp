// IQ2_XXS: f16 d, then for each 32 weights four 8-bit grid indices and a word with four 7-bit sign indices and, in its
// top four bits, a scale. w = d * (0.5 + scale) / 4 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int g = 0; g < 8; ++g) {
    const uint8_t* group = block + 2 + 8 * g;
    const uint32_t signs = load_u32(group + 4);
    const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
    for (int l = 0; l < 4; ++l)
      decode_grid8(iq2_xxs_grid()[group[l]], iq_signs(signs >> (7 * l) & 127), scale, out + 32 * g + 8 * l);
  }
}

} // namespace

constinit const Codec kIQ2XXSCodec =
    gguf_blocks<256, 66, decode_block>(CodecId::kIQ2_XXS, "iq2_xxs", "IQ2_XXS", 16, DotForm::kCodebook);

} // namespace cortiq::formats
