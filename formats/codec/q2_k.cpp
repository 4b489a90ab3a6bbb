// Q2_K: 16 bytes of 4-bit scales (low) and 4-bit minimums, one of each for 16 weights, 64 bytes of 2-bit codes, f16 d,
// f16 dmin at the end. A half of 128 weights keeps its four runs of 32 in the four bit pairs of 32 bytes.
// w = (d * scale) * code - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 80));
  const float dmin = half_to_float(load_u16(block + 82));
  for (int i = 0; i < 256; ++i) {
    const int code = block[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const uint8_t sub = block[i / 16];
    out[i] = d * static_cast<float>(sub & 15) * static_cast<float>(code) - dmin * static_cast<float>(sub >> 4);
  }
}

} // namespace

constinit const Codec kQ2KCodec =
    gguf_blocks<256, 84, decode_block>(CodecId::kQ2_K, "q2_k", "Q2_K", 10, DotForm::kAffineInt);

} // namespace cortiq::formats
