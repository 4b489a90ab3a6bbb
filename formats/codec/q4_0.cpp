// Q4_0: f16 d, 16 bytes of nibbles; byte i holds weights i (low half) and 16 + i. w = (nibble - 8) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
    out[16 + i] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
  }
}

} // namespace

constinit const Codec kQ40Codec =
    gguf_blocks<32, 18, decode_block>(CodecId::kQ4_0, "q4_0", "Q4_0", 2, DotForm::kAffineInt);

} // namespace cortiq::formats
