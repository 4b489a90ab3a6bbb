// Q8_0: f16 d, 32 int8 codes. w = d * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

} // namespace

constinit const Codec kQ80Codec =
    gguf_blocks<32, 34, decode_block>(CodecId::kQ8_0, "q8_0", "Q8_0", 8, DotForm::kAffineInt);

} // namespace cortiq::formats
