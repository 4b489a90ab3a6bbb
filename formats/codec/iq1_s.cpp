// IQ1_S: f16 d, 32 low bytes of grid indices, one for 8 weights, then for each 32 weights a word with four times three
// high index bits, a 3-bit scale and the sign of the shift. w = d * (2 * scale + 1) * (level +- 1/8).

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
    const int high = load_u16(block + 34 + v / 4 * 2);
    const int index = block[2 + v] | (high >> (v % 4 * 3) & 7) << 8;
    const float scale = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
    decode_levels8(iq1_grid()[index], high >> 15 != 0, scale, out + 8 * v);
  }
}

} // namespace

constinit const Codec kIQ1SCodec =
    gguf_blocks<256, 50, decode_block>(CodecId::kIQ1_S, "iq1_s", "IQ1_S", 19, DotForm::kCodebook);

} // namespace cortiq::formats
