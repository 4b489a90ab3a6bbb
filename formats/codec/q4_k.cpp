// Q4_K: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums, 128 bytes of nibbles: 32 bytes serve a pair of
// sub-blocks of 32, the first in the low halves. w = (d * scale) * nibble - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/k_quant_scales.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const float dmin = half_to_float(load_u16(block + 2));
  for (int s = 0; s < 8; ++s) {
    const KQuantScale sub = k_quant_scale(block + 4, s);
    const float scale = d * static_cast<float>(sub.scale);
    const float minimum = dmin * static_cast<float>(sub.minimum);
    const uint8_t* codes = block + 16 + 32 * (s / 2);
    for (int l = 0; l < 32; ++l)
      out[32 * s + l] = scale * static_cast<float>(codes[l] >> (s % 2 * 4) & 15) - minimum;
  }
}

} // namespace

constinit const Codec kQ4KCodec =
    gguf_blocks<256, 144, decode_block>(CodecId::kQ4_K, "q4_k", "Q4_K", 12, DotForm::kAffineInt);

} // namespace cortiq::formats
