// Q1_0: f16 d, 128 bits, lowest first. A set bit is +d, a clear one -d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int i = 0; i < 128; ++i)
    out[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
}

} // namespace

constinit const Codec kQ10Codec =
    gguf_blocks<128, 18, decode_block>(CodecId::kQ1_0, "q1_0", "Q1_0", 41, DotForm::kAffineInt);

} // namespace cortiq::formats
