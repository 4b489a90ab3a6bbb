// IQ4_XS: f16 d, 8 high pairs (u16) and 8 low nibbles of 6-bit scales, one for 32 weights, then nibbles as in IQ4_NL.
// w = d * (scale - 32) * level.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq4_levels.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const uint32_t high = load_u16(block + 2);
  for (int g = 0; g < 8; ++g) {
    const int scale = (block[4 + g / 2] >> (g % 2 * 4) & 15) | static_cast<int>(high >> (2 * g) & 3) << 4;
    const float sub = d * static_cast<float>(scale - 32);
    const uint8_t* codes = block + 8 + 16 * g;
    for (int r = 0; r < 16; ++r) {
      out[32 * g + r] = sub * static_cast<float>(kIQ4Levels[codes[r] & 15]);
      out[32 * g + 16 + r] = sub * static_cast<float>(kIQ4Levels[codes[r] >> 4]);
    }
  }
}

} // namespace

constinit const Codec kIQ4XSCodec =
    gguf_blocks<256, 136, decode_block>(CodecId::kIQ4_XS, "iq4_xs", "IQ4_XS", 23, DotForm::kTable16);

} // namespace cortiq::formats
