// TQ1_0: 48 bytes of five base-3 digits, 4 bytes of four, f16 d at the end. The digits of a byte are 32 weights apart
// in the first 32 bytes, 16 in the next 16, 4 in the last 4. w = (digit - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"
#include "formats/codec/ternary.h"

namespace cortiq::formats {
namespace {

int digit(const uint8_t* block, int i) {
  if (i < 160)
    return ternary_digit(block[i % 32], i / 32);
  if (i < 240)
    return ternary_digit(block[32 + i % 16], (i - 160) / 16);
  return ternary_digit(block[48 + i % 4], (i - 240) / 4);
}

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 52));
  for (int i = 0; i < 256; ++i)
    out[i] = static_cast<float>(digit(block, i) - 1) * d;
}

} // namespace

constinit const Codec kTQ10Codec =
    gguf_blocks<256, 54, decode_block>(CodecId::kTQ1_0, "tq1_0", "TQ1_0", 34, DotForm::kAffineInt);

} // namespace cortiq::formats
