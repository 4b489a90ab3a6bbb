// TQ2_0: 64 bytes of 2-bit codes in Q2_K's order, f16 d at the end. w = (code - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 64));
  for (int i = 0; i < 256; ++i)
    out[i] = static_cast<float>((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1) * d;
}

} // namespace

constinit const Codec kTQ20Codec =
    gguf_blocks<256, 66, decode_block>(CodecId::kTQ2_0, "tq2_0", "TQ2_0", 35, DotForm::kAffineInt);

} // namespace cortiq::formats
