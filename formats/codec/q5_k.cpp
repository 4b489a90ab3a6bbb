// Q5_K: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums, 32 bytes of fifth bits (bit s of byte l belongs to
// weight l of sub-block s), 128 bytes of nibbles as in Q4_K. w = (d * scale) * code - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/k_quant_scales.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const float dmin = half_to_float(load_u16(block + 2));
  const uint8_t* high = block + 16;
  for (int s = 0; s < 8; ++s) {
    const KQuantScale sub = k_quant_scale(block + 4, s);
    const float scale = d * static_cast<float>(sub.scale);
    const float minimum = dmin * static_cast<float>(sub.minimum);
    const uint8_t* codes = block + 48 + 32 * (s / 2);
    for (int l = 0; l < 32; ++l) {
      const int code = (codes[l] >> (s % 2 * 4) & 15) | (high[l] >> s & 1) << 4;
      out[32 * s + l] = scale * static_cast<float>(code) - minimum;
    }
  }
}

} // namespace

constinit const Codec kQ5KCodec =
    gguf_blocks<256, 176, decode_block>(CodecId::kQ5_K, "q5_k", "Q5_K", 13, DotForm::kAffineInt);

} // namespace cortiq::formats
