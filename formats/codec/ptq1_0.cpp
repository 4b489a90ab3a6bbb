// PTQ1_0: 24 bytes of five base-3 digits, 2 bytes of four, f16 d at the end. The digits of a byte are 16 weights apart
// in the first 16 bytes, 8 in the next 8, 2 in the last 2. w = (digit - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"
#include "formats/codec/ternary.h"

namespace cortiq::formats {
namespace {

int digit(const uint8_t* block, int i) {
  if (i < 80)
    return ternary_digit(block[i % 16], i / 16);
  if (i < 120)
    return ternary_digit(block[16 + i % 8], (i - 80) / 8);
  return ternary_digit(block[24 + i % 2], (i - 120) / 2);
}

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 26));
  for (int i = 0; i < 128; ++i)
    out[i] = static_cast<float>(digit(block, i) - 1) * d;
}

} // namespace

constinit const Codec kPTQ10Codec =
    gguf_blocks<128, 28, decode_block>(CodecId::kPTQ1_0, "ptq1_0", "PTQ1_0", 143, DotForm::kAffineInt);

} // namespace cortiq::formats
