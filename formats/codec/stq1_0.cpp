// STQ1_0: a 4-bit slot for each of 64 groups of four weights, 64 sign bits, f16 d at the end. Slot and sign pick four
// levels at once (stq1_0_pattern.h); the weights of a group stand 16 apart. w = level * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"
#include "formats/codec/stq1_0_pattern.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block + 40));
  for (int g = 0; g < 64; ++g) {
    const int slot = block[g / 2] >> (g % 2 * 4) & 15;
    const int sign = block[32 + g / 8] >> (g % 8) & 1;
    const int pattern = kSTQ10Pattern[16 * sign + slot];
    for (int p = 0; p < 4; ++p)
      out[g / 16 * 64 + g % 16 + 16 * p] = static_cast<float>((pattern >> (2 * p) & 3) - 1) * d;
  }
}

} // namespace

constinit const Codec kSTQ10Codec =
    gguf_blocks<256, 42, decode_block>(CodecId::kSTQ1_0, "stq1_0", "STQ1_0", 42, DotForm::kCodebook);

} // namespace cortiq::formats
