// NVFP4: four E4M3 scales, each for 16 weights, then FP4 codes, 8 bytes for 16 weights (r and 8 + r share a byte).
// w = twice the code's value * (scale / 2).

#include "formats/codec/codec_rows.h"
#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  for (int s = 0; s < 4; ++s) {
    const float scale = 0.5f * nvfp4_scale(block[s]);
    const uint8_t* codes = block + 4 + 8 * s;
    for (int r = 0; r < 8; ++r) {
      out[16 * s + r] = static_cast<float>(kFP4Doubled[codes[r] & 15]) * scale;
      out[16 * s + 8 + r] = static_cast<float>(kFP4Doubled[codes[r] >> 4]) * scale;
    }
  }
}

} // namespace

constinit const Codec kNVFP4Codec =
    gguf_blocks<64, 36, decode_block>(CodecId::kNVFP4, "nvfp4", "NVFP4", 40, DotForm::kTable16);

} // namespace cortiq::formats
