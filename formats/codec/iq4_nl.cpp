// IQ4_NL: f16 d, 16 bytes of nibbles as in Q4_0, each the index of one of 16 levels. w = d * level.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq4_levels.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(kIQ4Levels[block[2 + i] & 15]) * d;
    out[16 + i] = static_cast<float>(kIQ4Levels[block[2 + i] >> 4]) * d;
  }
}

} // namespace

constinit const Codec kIQ4NLCodec =
    gguf_blocks<32, 18, decode_block>(CodecId::kIQ4_NL, "iq4_nl", "IQ4_NL", 20, DotForm::kTable16);

} // namespace cortiq::formats
