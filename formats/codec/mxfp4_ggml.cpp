// MXFP4 as ggml stores it: a byte of scale exponent, 16 bytes of FP4 codes (weights i and 16 + i share a byte).
// w = twice the code's value * 2^(exponent - 128); 255 is an exponent as any other, and code 8 is +0.

#include "formats/codec/codec_rows.h"
#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float scale = fp4_half_scale(block[0]);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(kFP4Doubled[block[1 + i] & 15]) * scale;
    out[16 + i] = static_cast<float>(kFP4Doubled[block[1 + i] >> 4]) * scale;
  }
}

} // namespace

constinit const Codec kMXFP4GGMLCodec =
    gguf_blocks<32, 17, decode_block>(CodecId::kMXFP4_GGML, "mxfp4_ggml", "MXFP4", 39, DotForm::kTable16);

} // namespace cortiq::formats
