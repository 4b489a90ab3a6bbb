// Q3_K: 32 bytes of third bits (bit s of byte l belongs to weight l of run s of 32), 64 bytes of 2-bit codes in Q2_K's
// order, 12 bytes of 6-bit scales, f16 d at the end. A clear third bit takes 4 off. w = (d * (scale - 32)) * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

/// Scale of the 16 weights of sub-block `s`: four low bits from bytes 0..7, two high bits from bytes 8..11.
int sub_scale(const uint8_t* scales, int s) {
  return (scales[s % 8] >> (s / 8 * 4) & 15) | (scales[8 + s % 4] >> (s / 4 * 2) & 3) << 4;
}

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 108));
  for (int i = 0; i < 256; ++i) {
    const int low = block[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int code = low - (block[i % 32] >> (i / 32) & 1 ? 0 : 4);
    out[i] = d * static_cast<float>(sub_scale(block + 96, i / 16) - 32) * static_cast<float>(code);
  }
}

} // namespace

constinit const Codec kQ3KCodec =
    gguf_blocks<256, 110, decode_block>(CodecId::kQ3_K, "q3_k", "Q3_K", 11, DotForm::kAffineInt);

} // namespace cortiq::formats
