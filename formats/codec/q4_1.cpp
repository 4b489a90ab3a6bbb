// Q4_1: f16 d, f16 m, 16 bytes of nibbles; byte i holds weights i (low half) and 16 + i. w = d * nibble + m.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const float m = half_to_float(load_u16(block + 2));
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(block[4 + i] & 15) * d + m;
    out[16 + i] = static_cast<float>(block[4 + i] >> 4) * d + m;
  }
}

} // namespace

constinit const Codec kQ41Codec =
    gguf_blocks<32, 20, decode_block>(CodecId::kQ4_1, "q4_1", "Q4_1", 3, DotForm::kAffineInt);

} // namespace cortiq::formats
